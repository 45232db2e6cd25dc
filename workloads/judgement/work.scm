; Lists and vectors, made and thrown away.
(define (range n) (let loop ((i (- n 1)) (l '())) (if (< i 0) l (loop (- i 1) (cons i l)))))
(define (make-tree depth) (if (= depth 0) '() (cons (make-tree (- depth 1)) (make-tree (- depth 1)))))
(define (size tree) (if (null? tree) 1 (+ (size (car tree)) (size (cdr tree)))))
(define (again n sum)
  (if (= n 0) sum
      (again (- n 1) (+ sum (size (make-tree 14))
                        (string-length (apply string-append (map number->string (range 2000))))))))
(display (again 40 0))
(newline)
