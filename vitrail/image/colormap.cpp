// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/colormap_internal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vitrail::image {
namespace {

using Rgb = std::array<double, 3>;

// OKLab to linear sRGB: the cubed cone responses times a matrix (constants of the paper).
Rgb linear_rgb(double lightness, double a, double b) {
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool in_gamut(const Rgb& color) {
  return std::all_of(color.begin(), color.end(), [](double x) { return x >= 0 && x <= 1; });
}

uint8_t encoded(double linear) {  // sRGB's transfer curve
  const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

std::array<uint8_t, 3> heat_color(double t) {
  const double lightness = 0.20 + 0.75 * t;
  const double hue = (300 + 165 * t) * std::numbers::pi / 180;   // violet, red at 30°, yellow at 105°
  double chroma = 0.10 + 0.10 * std::sin(std::numbers::pi * t);  // maximal in the middle
  Rgb color = linear_rgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  while (!in_gamut(color) && chroma > 0) {  // outside the sRGB gamut: reduces the chroma, keeps the lightness
    chroma -= 0.002;
    color = linear_rgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  }
  return {encoded(color[0]), encoded(color[1]), encoded(color[2])};
}

std::array<std::array<uint8_t, 3>, 256> all_colors() {
  std::array<std::array<uint8_t, 3>, 256> colors;
  for (int i = 0; i < 256; ++i) colors[i] = heat_color(i / 255.0);
  return colors;
}

}  // namespace

const std::array<std::array<uint8_t, 3>, 256>& heat_colors() {
  static const auto colors = all_colors();
  return colors;
}

}  // namespace vitrail::image
