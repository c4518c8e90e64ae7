// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/sam/soft_edges_internal.h"

namespace vitrail::sam {
namespace {

constexpr int64_t kFewColors = 8;

// The pixels of a colour; `inner`: those whose 4 neighbours have it too; `between`: those that have a darker and a
// lighter one among 8 neighbours; `pieces`: connected by 8 neighbours.
struct ColorArea {
  int64_t pixels = 0, inner = 0, between = 0, pieces = 0;
  bool is_edge() const { return 4 * inner < pixels; }
};

using Areas = std::map<uint32_t, ColorArea>;

class ColorAreas {
 public:
  explicit ColorAreas(const image::Image& mask) : mask_(mask), seen_(mask.pixels.size() / 3) {
    for (int64_t y = 0; y < mask.height; ++y) {
      for (int64_t x = 0; x < mask.width; ++x) {
        if (color_at(x, y) != 0 && !seen_[index(x, y)]) add_piece(x, y);
      }
    }
  }

  const Areas& areas() const { return areas_; }

 private:
  struct Pixel {
    int64_t x, y;
  };

  size_t index(int64_t x, int64_t y) const { return static_cast<size_t>(y * mask_.width + x); }
  uint32_t color_at(int64_t x, int64_t y) const {
    const uint8_t* const pixel = mask_.row(y) + 3 * x;
    return static_cast<uint32_t>(pixel[0] << 16 | pixel[1] << 8 | pixel[2]);
  }

  void add_piece(int64_t x, int64_t y) {
    ColorArea& area = areas_[color_at(x, y)];
    ++area.pieces;
    seen_[index(x, y)] = true;
    pending_.push_back({x, y});
    while (!pending_.empty()) {
      const Pixel pixel = pending_.back();
      pending_.pop_back();
      ++area.pixels;
      add_pixel(pixel, area);
    }
  }

  // Adds the neighbours of the same colour to the piece.
  void add_pixel(Pixel at, ColorArea& area) {
    const uint32_t color = color_at(at.x, at.y);
    bool is_inner = true, has_darker = false, has_lighter = false;
    for (int64_t y = std::max<int64_t>(at.y - 1, 0); y <= std::min(at.y + 1, mask_.height - 1); ++y) {
      for (int64_t x = std::max<int64_t>(at.x - 1, 0); x <= std::min(at.x + 1, mask_.width - 1); ++x) {
        const uint32_t other = color_at(x, y);
        const bool is_same = other == color;
        is_inner = is_inner && (is_same || (x != at.x && y != at.y));
        has_darker = has_darker || other < color;
        has_lighter = has_lighter || other > color;
        if (!is_same || seen_[index(x, y)]) continue;
        seen_[index(x, y)] = true;
        pending_.push_back({x, y});
      }
    }
    area.inner += is_inner;
    area.between += has_darker && has_lighter;
  }

  const image::Image& mask_;
  std::vector<bool> seen_;
  std::vector<Pixel> pending_;
  Areas areas_;
};

// Few levels between black and one lighter object, as an interpolated edge has them.  Two may be a border's own labels.
bool are_levels_of_an_edge(const Areas& areas) {
  constexpr size_t kMinLevels = 3;
  if (areas.size() <= kMinLevels || areas.rbegin()->second.is_edge()) return false;
  return std::all_of(areas.begin(), std::prev(areas.end()), [](const auto& each) {
    const auto& [color, area] = each;
    const bool is_grey = color % 0x10101 == 0;
    return is_grey && area.is_edge() && 4 * area.between > 3 * area.pixels;
  });
}

}  // namespace

void require_hard_edges(const image::Image& mask, const std::string& where) {
  const ColorAreas colors(mask);
  int64_t edges = 0, pieces = 0, edge_pixels = 0, solid_pixels = 0;
  for (const auto& [color, area] : colors.areas()) {
    edges += area.is_edge();
    pieces += area.is_edge() ? area.pieces : 0;
    (area.is_edge() ? edge_pixels : solid_pixels) += area.pixels;
  }
  const auto count = static_cast<int64_t>(colors.areas().size());
  // Thin objects are in one piece, and without a larger one that they could be the edge of.
  const bool are_soft = 2 * pieces > 3 * edges || edge_pixels < 2 * solid_pixels;
  const bool is_one_edge = are_levels_of_an_edge(colors.areas());
  if (!is_one_edge && (edges <= kFewColors || 2 * edges <= count || !are_soft)) return;
  throw Error(where, "objects of one colour each, or of two values (resize masks without interpolation)",
              str(count, " colours with ", edges, " of soft edges"));
}

}  // namespace vitrail::sam
