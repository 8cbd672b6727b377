;;; What the sessions in Emacs share.  -*- lexical-binding: t -*-
;; What was seen goes to $SEEN, a JSON object a line; a failure is a line with "error".

(require 'cl-lib)
(require 'json)

(setq browse-url-browser-function 'browse-url-xdg-open
      native-comp-jit-compilation nil  ; it would leave compilers running
      native-comp-enable-subr-trampolines nil
      make-backup-files nil)

(defun say (step value)
  (let ((coding-system-for-write 'utf-8))
    (write-region (concat (json-encode `((step . ,step) (value . ,value))) "\n") nil (getenv "SEEN") t 'quiet)))

(defun messages ()
  (with-current-buffer (messages-buffer) (buffer-string)))

(defun wait (what seconds condition)
  (with-timeout (seconds (error "%s was waited for in vain: %s" what (messages)))
    (while (not (funcall condition))
      (accept-process-output nil 0.05)
      ;; In batch Emacs never counts as idle, which is when eglot tells of changes.
      (mapc #'timer-event-handler (copy-sequence timer-idle-list)))))

(defun wait-for-verdict-in-file ()
  "The verdict is told before it is written."
  (wait "the verdict in the kernel file" 30
        (lambda ()
          (with-temp-buffer
            (insert-file-contents "kernels/rms_norm_triton.py")
            (search-forward "status = \"ok\"" nil t)))))

(defun run-session (session)
  "Call SESSION, write down how it failed if it did, and end."
  (condition-case problem
      (funcall session)
    (error (say "error" (error-message-string problem))))
  (kill-emacs))

(provide 'emacs_session)
