-- One session in Neovim, from the action that generates a kernel to its use.

local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local steps = dofile(here .. "neovim_steps.lua")

local function session()
  steps.server()
  local has_lenses = vim.env.LENSES == "yes"
  vim.fn.search("RMSNorm(nn")

  steps.act("Generate Triton kernel for RMSNorm")
  steps.wait_for("kernel-valid")
  steps.hover()
  if has_lenses then steps.lens("✓") end

  -- The maths is changed: stale at once, out of date once it is saved, right again once it is undone and saved.
  local position = vim.api.nvim_win_get_cursor(0)
  vim.fn.search([[) \zs\* self.weight]])
  steps.press("r/")
  steps.wait_for("kernel-stale", 5)
  if has_lenses then steps.lens("↻ stale") end
  vim.cmd("write")
  steps.wait_for("kernel-outdated")
  if has_lenses then steps.lens("Kernel out of date · Regenerate") end
  steps.press("u")
  vim.cmd("write")
  steps.wait_for("kernel-valid")
  -- The verdict is told before it is written.
  steps.wait("the verdict in the kernel file", 30, function()
    return table.concat(vim.fn.readfile("kernels/rms_norm_triton.py"), "\n"):find('status = "ok"', 1, true) ~= nil
  end)
  vim.api.nvim_win_set_cursor(0, position)

  steps.act("Show validation report for RMSNorm")
  if vim.env.BROWSES == "yes" then
    steps.wait("the report in the browser", 10, function() return vim.fn.filereadable(vim.env.OPENED) == 1 end)
  else
    steps.wait("where the report is", 10, function() return vim.api.nvim_exec("messages", true):find("report") ~= nil end)
  end

  steps.act("Use RMSNormTriton in this file")
  steps.wait("the import", 5, function() return vim.fn.search("from kernels import rms_norm_triton", "n") > 0 end)
  steps.say("text", vim.api.nvim_buf_get_lines(0, 0, -1, false))
  steps.say("messages", vim.api.nvim_exec("messages", true))
end

steps.run(session)
