-- What sessions in Neovim share: the keys that a user presses, and what is waited for. What was seen goes to $SEEN, a JSON
-- object a line; a failure is a line with "error", and what was seen up to there stands above it.

local seen = io.open(vim.env.SEEN, "w")

local function say(step, value)
  seen:write(vim.fn.json_encode({ step = step, value = value }), "\n")
  seen:flush()
end

local function code(d)
  return d.code or (d.user_data and d.user_data.lsp and d.user_data.lsp.code)
end

local function diagnostics()
  return vim.tbl_map(function(d)
    return { code = code(d), severity = d.severity, message = d.message, line = d.lnum, column = d.col }
  end, vim.diagnostic.get(0))
end

-- The texts of the lenses that Neovim holds; without a screen it draws none.
local function lenses()
  local newer = vim.lsp.codelens.enable ~= nil
  return vim.tbl_map(function(one)
    return (newer and one.lens or one).command.title
  end, vim.lsp.codelens.get(newer and { bufnr = 0 } or vim.api.nvim_get_current_buf()))
end

local function wait(what, seconds, condition)
  if not vim.wait(seconds * 1000, condition, 20) then
    local messages = vim.api.nvim_exec("messages", true)
    error(what .. " was waited for in vain: " .. vim.fn.json_encode({ diagnostics(), lenses(), messages }))
  end
end

local function wait_for(expected, seconds)
  wait(expected, seconds or 60, function()
    local found = diagnostics()
    return #found == 1 and found[1].code == expected
  end)
  say(expected, diagnostics()[1])
end

local function press(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), "mx", false)
end

-- The menu of actions, answered with the one whose title begins like this.
local function act(wanted)
  local answered = false
  vim.ui.select = function(items, options, choose)
    local titles = vim.tbl_map(options.format_item, items)
    say("actions", titles)
    answered = true
    for i, title in ipairs(titles) do
      if vim.startswith(title, wanted) then
        return choose(items[i], i)
      end
    end
    error(wanted .. " is not among the actions")
  end
  press("gra")
  wait("the menu of actions", 10, function() return answered end)
end

local function hover()
  local function window()
    for _, one in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(one).relative ~= "" then return one end
    end
  end
  press("K")
  wait("the hover", 10, window)
  say("hover", vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window()), 0, -1, false))
  vim.api.nvim_win_close(window(), true)
end

local function lens(beginning)
  wait("a lens that begins with " .. beginning, 10, function()
    local found = lenses()
    return found[1] ~= nil and vim.startswith(found[1], beginning)
  end)
  say("lens", lenses()[1])
end

-- Goes through a session, and ends Neovim, whatever comes of it.
local function run(session)
  local fine, problem = xpcall(session, debug.traceback)
  if not fine then say("error", problem) end
  vim.cmd("qall!")
end

local function server()
  local clients = vim.lsp.get_clients or vim.lsp.get_active_clients
  wait("the server", 20, function()
    local one = clients()[1]
    return one ~= nil and (one.initialized ~= false)
  end)
end

return {
  say = say, wait = wait, wait_for = wait_for, press = press, act = act, hover = hover, lens = lens, server = server, run = run,
}
