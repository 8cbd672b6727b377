;;; One session in Emacs with eglot, with the commands that a user calls.  -*- lexical-binding: t -*-

(require 'emacs_session)
(require 'eglot)
(require 'flymake)

(defun diagnostics ()
  (mapcar (lambda (d)
            `((type . ,(format "%s" (flymake-diagnostic-type d)))
              (text . ,(flymake-diagnostic-text d))
              (line . ,(line-number-at-pos (flymake-diagnostic-beg d)))))
          (flymake-diagnostics)))

(defun wait-for (code &optional seconds)
  (wait code (or seconds 60)
        (lambda ()
          (let ((found (diagnostics)))
            (and (= (length found) 1) (string-search code (alist-get 'text (car found)))))))
  (say code (car (diagnostics))))

(defun act (wanted)
  "Call the menu of actions and answer it with the one that is called WANTED."
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt choices &rest _)
               (let ((titles (mapcar #'car choices)))
                 (say "actions" (vconcat titles))
                 (or (car (member wanted titles)) (error "%s is not among the actions" wanted))))))
    (let ((last-nonmenu-event ?x))  ; called from the keyboard, not by the mouse
      (call-interactively #'eglot-code-actions))))

(defun hover ()
  (when (get-buffer "*eldoc*") (kill-buffer "*eldoc*"))
  (let ((text (lambda ()
                (let ((buffer (cl-find-if (lambda (one) (string-match-p "\\*eldoc" (buffer-name one))) (buffer-list))))
                  (if buffer (with-current-buffer buffer (buffer-string)) "")))))
    (eldoc-print-current-symbol-info t)
    (wait "the hover" 10 (lambda () (string-search "RMSNormTriton" (funcall text))))
    (say "hover" (substring-no-properties (funcall text)))))

(defun session ()
  (find-file "rms_norm.py")
  (call-interactively #'eglot)
  (wait "the server" 20 #'eglot-current-server)
  (goto-char (point-min))
  (search-forward "class RMS")

  (act "Generate Triton kernel for RMSNorm")
  (wait-for "kernel-valid")
  (hover)

  ;; The maths is changed: stale at once, out of date once it is saved, right again once it is changed back and saved.
  (save-excursion
    (search-forward ") * self.weight")
    (replace-match ") / self.weight"))
  (wait-for "kernel-stale" 10)
  (save-buffer)
  (wait-for "kernel-outdated")
  (save-excursion
    (search-forward ") / self.weight")
    (replace-match ") * self.weight"))
  (save-buffer)
  (wait-for "kernel-valid")
  (wait-for-verdict-in-file)

  (act "Show validation report for RMSNorm")
  (if (equal (getenv "BROWSES") "yes")
      (wait "the report in the browser" 10 (lambda () (file-exists-p (getenv "OPENED"))))
    (wait "where the report is" 10 (lambda () (string-search "RMSNorm.html" (messages)))))

  (act "Use RMSNormTriton in this file")
  (wait "the import" 5 (lambda () (save-excursion (goto-char (point-min)) (search-forward "from kernels import rms_norm_triton" nil t))))
  (say "text" (buffer-string))
  (set-buffer-modified-p nil)
  (say "messages" (messages)))

(run-session #'session)
