;;; One session in Emacs with lsp-mode, with the commands that a user calls.  -*- lexical-binding: t -*-

(require 'emacs_session)
(require 'lsp-mode)

(setq lsp-auto-guess-root t  ; or it asks
      lsp-session-file (expand-file-name "lsp-session" (getenv "HOME"))
      lsp-enable-snippet nil
      lsp-enable-file-watchers nil)  ; it asks whether it may watch all of the environment

(defun diagnostics ()
  (let (found)
    (maphash (lambda (_path those) (setq found (append found (append those nil)))) (lsp-diagnostics t))
    found))

(defun wait-for (code)
  (wait code 60 (lambda ()
                  (let ((found (diagnostics)))
                    (and (= (length found) 1) (equal code (lsp:diagnostic-code? (car found)))))))
  (say code (lsp:diagnostic-message (car (diagnostics)))))

(defun act (title)
  (let ((action (cl-find title (lsp-code-actions-at-point) :key #'lsp:code-action-title :test #'equal)))
    (unless action (error "%s is not among the actions" title))
    (lsp-execute-code-action action)))

(defun session ()
  (find-file "rms_norm.py")
  (lsp)
  (wait "the server" 20 (lambda ()
                          (cl-some (lambda (one) (eq (lsp--workspace-status one) 'initialized)) (lsp-workspaces))))
  (goto-char (point-min))
  (search-forward "class RMS")
  (act "Generate Triton kernel for RMSNorm")
  (wait-for "kernel-valid")
  (save-excursion
    (search-forward ") * self.weight")
    (replace-match ") / self.weight"))
  (save-buffer)
  (wait-for "kernel-outdated")
  (save-excursion
    (search-forward ") / self.weight")
    (replace-match ") * self.weight"))
  (save-buffer)
  (wait-for "kernel-valid")
  (wait-for-verdict-in-file)
  (say "messages" (messages)))

(run-session #'session)
