; Trees and hash tables, collected by the system's own collector.
(defun make-tree (depth) (if (zerop depth) nil (cons (make-tree (1- depth)) (make-tree (1- depth)))))
(defun size (tree) (if (null tree) 1 (+ (size (car tree)) (size (cdr tree)))))
(let ((sum 0) (table (make-hash-table :test #'equal)))
  (dotimes (round 40) (incf sum (size (make-tree 17))))
  (dotimes (number 500000) (push number (gethash (format nil "~a" (mod (* number 7919) 20011)) table)))
  (maphash (lambda (key list) (declare (ignore key)) (incf sum (length list))) table)
  (print sum))
