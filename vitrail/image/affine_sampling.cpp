// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/affine_sampling_internal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace vitrail::image {
namespace {

// The pixel index of a position; −1 for all negative positions.
int64_t pixel_at(double position) { return position < 0.0 ? -1 : static_cast<int64_t>(position); }

template <int kChannels>
void copy_pixel(const Image& source, int64_t x, int64_t y, uint8_t* out) {
  std::memcpy(out, source.row(y) + x * kChannels, kChannels);
}

// A matrix without rotation and shear: positions are accumulated along each axis, as in Pillow.
template <int kChannels>
void nearest_scaled(const Image& source, const AffineMatrix& m, Image& result) {
  std::vector<int64_t> columns;
  double x_in = m[2] + m[0] * 0.5, y_in = m[5] + m[4] * 0.5;
  for (int64_t x = 0; x < result.width; ++x, x_in += m[0]) columns.push_back(pixel_at(x_in));
  for (int64_t y = 0; y < result.height; ++y, y_in += m[4]) {
    const int64_t row = pixel_at(y_in);
    if (row < 0 || row >= source.height) continue;
    for (int64_t x = 0; x < result.width; ++x) {
      if (columns[x] < 0 || columns[x] >= source.width) continue;
      copy_pixel<kChannels>(source, columns[x], row, result.row(y) + x * kChannels);
    }
  }
}

// Whether the integer part of the mapped position fits into 16 bits.
bool fits_fixed(const AffineMatrix& m, int64_t x, int64_t y) {
  const double dx = static_cast<double>(x), dy = static_cast<double>(y);
  return std::abs(dx * m[0] + dy * m[1] + m[2]) < 32768.0 && std::abs(dx * m[3] + dy * m[4] + m[5]) < 32768.0;
}

// Positions in 16.16 fixed point, as Pillow computes them if they fit.
template <int kChannels>
void nearest_fixed(const Image& source, const AffineMatrix& m, Image& result) {
  const auto fixed = [](double x) { return static_cast<int64_t>(std::floor(x * 65536.0 + 0.5)); };
  const int64_t x_step = fixed(m[0]), y_step = fixed(m[3]);
  int64_t x_row = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y_row = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const auto width = static_cast<uint64_t>(source.width), height = static_cast<uint64_t>(source.height);
  for (int64_t y = 0; y < result.height; ++y, x_row += fixed(m[1]), y_row += fixed(m[4])) {
    uint8_t* out = result.row(y);
    int64_t x_in = x_row, y_in = y_row;
    for (int64_t x = 0; x < result.width; ++x, out += kChannels, x_in += x_step, y_in += y_step) {
      const auto column = static_cast<uint64_t>(x_in >> 16), row = static_cast<uint64_t>(y_in >> 16);
      if (column < width && row < height) {
        copy_pixel<kChannels>(source, static_cast<int64_t>(column), static_cast<int64_t>(row), out);
      }
    }
  }
}

template <int kChannels>
void nearest_double(const Image& source, const AffineMatrix& m, Image& result) {
  double x_row = m[2] + m[1] * 0.5 + m[0] * 0.5, y_row = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int64_t y = 0; y < result.height; ++y, x_row += m[1], y_row += m[4]) {
    double x_in = x_row, y_in = y_row;
    for (int64_t x = 0; x < result.width; ++x, x_in += m[0], y_in += m[3]) {
      const int64_t column = pixel_at(x_in), row = pixel_at(y_in);
      if (column < 0 || column >= source.width || row < 0 || row >= source.height) continue;
      copy_pixel<kChannels>(source, column, row, result.row(y) + x * kChannels);
    }
  }
}

template <int kChannels>
void nearest(const Image& source, const AffineMatrix& m, Image& result) {
  if (m[1] == 0 && m[3] == 0) return nearest_scaled<kChannels>(source, m, result);
  const int64_t w = result.width, h = result.height;
  if (fits_fixed(m, 0, 0) && fits_fixed(m, w, h) && fits_fixed(m, 0, h) && fits_fixed(m, w, 0)) {
    return nearest_fixed<kChannels>(source, m, result);
  }
  nearest_double<kChannels>(source, m, result);
}

// A source position as the pixel whose centre precedes it and the fraction of the distance to the next centre.
struct SourcePosition {
  int64_t x, y;
  double dx, dy;
};

// The floor of x ≥ −0.5.
int64_t floor_of(double x) { return x < 0.0 ? -1 : static_cast<int64_t>(x); }

// Calls pixel(position, out) for each result pixel whose source position is inside the source.
template <int kChannels, class Pixel>
void for_each_inside(const Image& source, const AffineMatrix& m, Image& result, Pixel pixel) {
  const double width = static_cast<double>(source.width), height = static_cast<double>(source.height);
  for (int64_t y = 0; y < result.height; ++y) {
    uint8_t* out = result.row(y);
    const double y_center = static_cast<double>(y) + 0.5;
    const double x_part = m[1] * y_center, y_part = m[4] * y_center;
    for (int64_t x = 0; x < result.width; ++x, out += kChannels) {
      const double x_center = static_cast<double>(x) + 0.5;
      const double x_in = m[0] * x_center + x_part + m[2], y_in = m[3] * x_center + y_part + m[5];
      if (x_in < 0.0 || x_in >= width || y_in < 0.0 || y_in >= height) continue;
      const double x_at = x_in - 0.5, y_at = y_in - 0.5;
      const int64_t column = floor_of(x_at), row = floor_of(y_at);
      pixel(SourcePosition{column, row, x_at - static_cast<double>(column), y_at - static_cast<double>(row)}, out);
    }
  }
}

template <int kChannels>
void bilinear(const Image& source, const AffineMatrix& m, Image& result) {
  const int64_t right = source.width - 1, bottom = source.height - 1;
  for_each_inside<kChannels>(source, m, result, [&](const SourcePosition& at, uint8_t* out) {
    const int64_t x0 = std::max<int64_t>(at.x, 0) * kChannels, x1 = std::min(at.x + 1, right) * kChannels;
    const uint8_t* upper = source.row(std::max<int64_t>(at.y, 0));
    const uint8_t* lower = source.row(std::min(at.y + 1, bottom));
    for (int c = 0; c < kChannels; ++c) {
      const double above = upper[x0 + c] + (upper[x1 + c] - upper[x0 + c]) * at.dx;
      const double below = lower[x0 + c] + (lower[x1 + c] - lower[x0 + c]) * at.dx;
      out[c] = static_cast<uint8_t>(static_cast<int>(above + (below - above) * at.dy));
    }
  });
}

// Pillow's cubic interpolation between v2 and v3 at the fraction d.
double cubic(double v1, double v2, double v3, double v4, double d) {
  const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

template <int kChannels>
void bicubic(const Image& source, const AffineMatrix& m, Image& result) {
  const int64_t right = source.width - 1, bottom = source.height - 1;
  for_each_inside<kChannels>(source, m, result, [&](const SourcePosition& at, uint8_t* out) {
    int64_t x[4];
    const uint8_t* rows[4];
    for (int i = 0; i < 4; ++i) {
      x[i] = std::clamp<int64_t>(at.x - 1 + i, 0, right) * kChannels;
      rows[i] = source.row(std::clamp<int64_t>(at.y - 1 + i, 0, bottom));
    }
    for (int c = 0; c < kChannels; ++c) {
      const auto along = [&](const uint8_t* row) {
        return cubic(row[x[0] + c], row[x[1] + c], row[x[2] + c], row[x[3] + c], at.dx);
      };
      // dy is 0 for translations by integers and shears along x: the polynomial in y is then its constant term.
      const double value =
          at.dy == 0 ? along(rows[1]) : cubic(along(rows[0]), along(rows[1]), along(rows[2]), along(rows[3]), at.dy);
      out[c] = static_cast<uint8_t>(static_cast<int>(std::min(std::max(value, 0.0), 255.0)));
    }
  });
}

}  // namespace

void sample_nearest(const Image& source, const AffineMatrix& matrix, Image& result) {
  source.channels == 1 ? nearest<1>(source, matrix, result) : nearest<3>(source, matrix, result);
}

void sample_bilinear(const Image& source, const AffineMatrix& matrix, Image& result) {
  source.channels == 1 ? bilinear<1>(source, matrix, result) : bilinear<3>(source, matrix, result);
}

void sample_bicubic(const Image& source, const AffineMatrix& matrix, Image& result) {
  source.channels == 1 ? bicubic<1>(source, matrix, result) : bicubic<3>(source, matrix, result);
}

}  // namespace vitrail::image
