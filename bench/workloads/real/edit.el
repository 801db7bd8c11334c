;; Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
;; Edits a text in a buffer: replacements, sorting, filling, and a list of its words.
(with-temp-buffer
  (insert-file-contents (pop command-line-args-left) nil)
  (while (re-search-forward "\\b\\(ba\\|lan\\)\\([a-z]*\\)" nil t)
    (replace-match "\\2-\\1"))
  (sort-lines nil (point-min) (point-max))
  (goto-char (point-min))
  (let ((words (make-hash-table :test 'equal)) (count 0))
    (while (re-search-forward "[a-z]+" nil t)
      (let ((word (match-string 0)))
        (puthash word (cons (point) (gethash word words)) words)))
    (maphash (lambda (word places) (setq count (+ count (length places) (length word)))) words)
    (fill-region (point-min) (/ (point-max) 8))
    (princ (format "%d %d\n" count (buffer-size)))))
