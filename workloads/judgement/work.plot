# A surface and its contours.
set terminal svg
set output "out/surface.svg"
set isosamples 180
set contour
splot sin(x) * cos(y) + 0.1 * x
