// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/point_operations_internal.h"

#include <algorithm>

namespace vitrail::image {
namespace {

using Histogram = std::array<int64_t, 256>;

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts{};
  const uint8_t* pixel = image.pixels.data();
  const size_t size = image.pixels.size();
  if (image.channels == 1) {
    // Two sets of counters: adjacent pixels are often equal, and increments of one counter depend on each other.
    Histogram other{};
    for (size_t i = 0; i + 1 < size; i += 2) ++counts[0][pixel[i]], ++other[pixel[i + 1]];
    if (size % 2 != 0) ++counts[0][pixel[size - 1]];
    for (int value = 0; value < 256; ++value) counts[0][value] += other[value];
  } else {
    for (size_t i = 0; i < size; i += 3) {
      ++counts[0][pixel[i]], ++counts[1][pixel[i + 1]], ++counts[2][pixel[i + 2]];
    }
  }
  return counts;
}

PointTable identity() {
  PointTable table;
  for (int value = 0; value < 256; ++value) table[value] = static_cast<uint8_t>(value);
  return table;
}

PointTable autocontrast_table(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  if (high <= low) return identity();
  const double scale = 255.0 / (high - low), offset = -low * scale;
  PointTable table;
  for (int value = 0; value < 256; ++value) {
    table[value] = static_cast<uint8_t>(std::clamp(static_cast<int>(value * scale + offset), 0, 255));
  }
  return table;
}

PointTable equalize_table(const Histogram& counts) {
  int64_t total = 0, last = 0, distinct = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    total += count, last = count, ++distinct;
  }
  const int64_t step = (total - last) / 255;
  if (distinct <= 1 || step == 0) return identity();
  PointTable table;
  int64_t sum = step / 2;
  for (int value = 0; value < 256; ++value) {
    table[value] = static_cast<uint8_t>(std::min<int64_t>(sum / step, 255));
    sum += counts[value];
  }
  return table;
}

// Applies to each channel the table made from its histogram.
template <class Make>
void apply_by_histogram(Image& image, Make make_table) {
  const std::array<Histogram, 3> counts = histograms(image);
  if (image.channels == 1) return apply_table(image, make_table(counts[0]));
  apply_tables(image, {make_table(counts[0]), make_table(counts[1]), make_table(counts[2])});
}

}  // namespace

void apply_table(Image& image, const PointTable& table) {
  for (uint8_t& value : image.pixels) value = table[value];
}

void apply_tables(Image& image, const std::array<PointTable, 3>& tables) {
  if (image.channels == 1) return apply_table(image, tables[0]);
  uint8_t* pixel = image.pixels.data();
  for (const uint8_t* end = pixel + image.pixels.size(); pixel < end; pixel += 3) {
    pixel[0] = tables[0][pixel[0]], pixel[1] = tables[1][pixel[1]], pixel[2] = tables[2][pixel[2]];
  }
}

void invert(Image& image) {
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(255 - value);
}

void posterize(Image& image, int bits) {
  const int mask = 0xff << (8 - bits);
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(value & mask);
}

void solarize(Image& image, double threshold) {
  PointTable table = identity();
  for (int value = 0; value < 256; ++value) {
    if (!(value < threshold)) table[value] = static_cast<uint8_t>(255 - value);
  }
  apply_table(image, table);
}

void solarize_add(Image& image, int add, int threshold) {
  PointTable table = identity();
  for (int value = 0; value < std::min(threshold, 256); ++value) {
    table[value] = static_cast<uint8_t>(std::clamp(value + add, 0, 255));
  }
  apply_table(image, table);
}

void autocontrast(Image& image) { apply_by_histogram(image, autocontrast_table); }

void equalize(Image& image) { apply_by_histogram(image, equalize_table); }

}  // namespace vitrail::image
