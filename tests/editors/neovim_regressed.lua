-- A session in Neovim with a kernel that lost speed: what changed is looked at, and the faster kernel taken back.

local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local steps = dofile(here .. "neovim_steps.lua")

local function session()
  steps.server()
  vim.fn.search("class Double")
  vim.cmd("normal! w")
  steps.wait_for("kernel-regressed")
  if vim.env.LENSES == "yes" then steps.lens("▼ 8 % slower than before") end

  steps.act("Show what changed in the Triton kernel for Double")
  if vim.env.SHOWS == "yes" then
    steps.wait("the difference", 10, function() return vim.api.nvim_buf_get_name(0):match("/Double%.diff$") ~= nil end)
    steps.say("difference", vim.api.nvim_buf_get_lines(0, 0, -1, false))
    steps.say("filetype", vim.bo.filetype)
    vim.cmd("buffer double.py")
  else
    local function named() return vim.api.nvim_exec("messages", true):match("What changed: ([^\n]*%.diff)") end
    steps.wait("where the difference is", 10, named)
    steps.say("difference", vim.fn.readfile(named()))
  end

  steps.act("Restore the faster Triton kernel for Double")
  steps.wait_for("kernel-valid", 120)
  steps.wait("the faster kernel in its file", 30, function()
    return table.concat(vim.fn.readfile("kernels/double_triton.py"), "\n"):find("double_kernel[", 1, true) ~= nil
  end)
  steps.say("messages", vim.api.nvim_exec("messages", true))
end

steps.run(session)
