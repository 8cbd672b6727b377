import torch
from torch import nn


class LSTMTagger(nn.Module):
    def __init__(self, vocabulary=1000, embedding=64, hidden=64, tags=12):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True, bidirectional=True)
        self.to_tags = nn.Linear(2 * hidden, tags)

    def forward(self, tokens):
        states, _ = self.lstm(self.embed(tokens))
        return torch.log_softmax(self.to_tags(states), dim=-1)


def get_inputs():
    return [torch.randint(0, 1000, (4, 20))]
