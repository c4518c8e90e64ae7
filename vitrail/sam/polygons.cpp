// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/polygons.h"

#include <array>

#include "vitrail/sam/components_internal.h"

namespace vitrail::sam {
namespace {

// East, south, west, north: the next one is a turn to the right.
constexpr std::array<Corner, 4> kSteps{{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
constexpr int kEast = 0;

class Tracer {
 public:
  explicit Tracer(const BinaryMask& mask) : mask_(mask), visited_(mask.pixels.size()) {}

  bool inside(int64_t x, int64_t y) const {
    return x >= 0 && y >= 0 && x < mask_.width && y < mask_.height && mask_.row(y)[x] != 0;
  }

  // Whether the upper edge of a pixel is on a ring that is not traced yet.
  bool begins_ring(int64_t x, int64_t y) const {
    return inside(x, y) && !inside(x, y - 1) && visited_[static_cast<size_t>(y * mask_.width + x)] == 0;
  }

  // Follows the edges with the mask on the right, beginning eastwards along the upper edge of pixel (x, y).
  Ring trace(int64_t x, int64_t y) {
    const Corner start{x, y};
    Ring ring;
    Corner at = start;
    int direction = kEast;
    do {
      if (direction == kEast) visited_[static_cast<size_t>(at.y * mask_.width + at.x)] = 1;
      const Corner step = kSteps[static_cast<size_t>(direction)];
      at = {at.x + step.x, at.y + step.y};
      const int next = turn(at, direction);
      if (next != direction) ring.push_back(at);
      direction = next;
    } while (!(at == start && direction == kEast));
    return ring;
  }

 private:
  // At a corner where two pixels of the mask touch, the ring goes on along the other pixel: they are connected.
  int turn(const Corner& at, int direction) const {
    const Corner ahead = kSteps[static_cast<size_t>(direction)],
                 right = kSteps[static_cast<size_t>((direction + 1) % 4)];
    // Whether the pixel ahead, to the left (−1) or the right (1), is in the mask.
    const auto pixel = [&](int64_t side) {
      const int64_t x = 2 * at.x + ahead.x + side * right.x,
                    y = 2 * at.y + ahead.y + side * right.y;  // twice its centre
      return inside((x - 1) / 2, (y - 1) / 2);
    };
    if (pixel(-1)) return (direction + 3) % 4;
    return pixel(1) ? direction : (direction + 1) % 4;
  }

  const BinaryMask& mask_;
  std::vector<uint8_t> visited_;  // [height, width]: upper edges
};

}  // namespace

int64_t signed_area(const Ring& ring) {
  int64_t twice = 0;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Corner &a = ring[i], &b = ring[(i + 1) % ring.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

std::vector<Polygon> polygons_of(const BinaryMask& mask) {
  const Components components = components_of(mask, 1);
  std::vector<Polygon> polygons(components.sizes.size());
  Tracer tracer(mask);
  for (int64_t y = 0; y < mask.height; ++y) {
    for (int64_t x = 0; x < mask.width; ++x) {
      if (!tracer.begins_ring(x, y)) continue;
      Polygon& polygon = polygons[static_cast<size_t>(components.labels[static_cast<size_t>(y * mask.width + x)] - 1)];
      Ring ring = tracer.trace(x, y);
      if (signed_area(ring) > 0) {
        polygon.outer = std::move(ring);
      } else {
        polygon.holes.push_back(std::move(ring));
      }
    }
  }
  return polygons;
}

}  // namespace vitrail::sam
