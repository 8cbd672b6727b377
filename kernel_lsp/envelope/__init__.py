"""For which calls a kernel holds, and for which modules; as Python in the generated class, for the kernels of all generators.

signature (how forward is declared), tensors and sizes, tree (the module and what it holds), modes (training, hooks,
gradients), module_settings (settings of modules and of objects that they hold) → rules (all of them in their order).
interface and identity: whether a kernel that was written for another class does for this one.
"""
