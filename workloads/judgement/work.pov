// Spheres that mirror each other.
#include "colors.inc"
camera { location <0, 6, -14> look_at <0, 0, 0> }
light_source { <20, 30, -20> color White }
plane { y, -1 pigment { checker color White color Gray } }
#declare Number = 0;
#while (Number < 400)
  sphere { <mod(Number, 20) - 10, 0, div(Number, 20) - 5>, 0.45 pigment { color rgb <mod(Number, 7) / 7, 0.4, 0.6> } finish { reflection 0.3 } }
  #declare Number = Number + 1;
#end
