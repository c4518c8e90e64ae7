// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_draw_internal.h"

#include <algorithm>
#include <numeric>

#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"

namespace vitrail::train {
namespace {

// Mirrors the first `width` of all columns of a row of pixels.
void mirror(uint8_t* row, int64_t width, int64_t channels) {
  for (int64_t a = 0, b = width - 1; a < b; ++a, --b) {
    std::swap_ranges(row + a * channels, row + (a + 1) * channels, row + b * channels);
  }
}

// The cells whose area is covered by half.
sam::BinaryMask downscaled(const sam::BinaryMask& mask, int64_t size) {
  image::Image grey{mask.width, mask.height, 1, mask.pixels};
  for (uint8_t& pixel : grey.pixels) pixel = pixel != 0 ? 255 : 0;
  const image::Image small = image::resize(grey, size, size, image::Filter::box);
  sam::BinaryMask result = sam::make_mask(size, size);
  std::ranges::transform(small.pixels, result.pixels.begin(), [](uint8_t value) { return value >= 128; });
  return result;
}

// `count` indices below `size`, in an order that is drawn: all of them before one is repeated.
std::vector<size_t> drawn_indices(size_t size, size_t count, RandomStream& random) {
  std::vector<size_t> order(size), result;
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(data::random_index(random, static_cast<int64_t>(i)))]);
  }
  for (size_t i = 0; i < count; ++i) result.push_back(order[i % size]);
  return result;
}

}  // namespace

std::optional<DrawnPrompt> SegmentDraw::draw_prompt(const sam::BinaryMask& mask, RandomStream& random) const {
  DrawnPrompt prompt{.target = downscaled(mask, mask_size_)};
  const bool is_box = random.uniform() < segment_of(recipe_).box_share;
  if (is_box) {
    prompt.box = jittered_box(mask, random);
  } else {
    prompt.points.push_back(click_in(mask, 1, random));
  }
  if (sam::area(prompt.target) == 0) return std::nullopt;
  return prompt;
}

DrawnSample SegmentDraw::draw(int64_t image, int64_t epoch, int64_t position) const {
  const uint64_t key = random_key("segment", recipe_.seed, static_cast<uint64_t>(epoch));
  RandomStream random(key, static_cast<uint64_t>(position));
  const bool flip = recipe_.augment.flip == data::Flip::random && data::random_coin(random);
  const std::shared_ptr<const SegmentSample> sample = samples_.get(image);
  if (!sample) return {.unreadable = true};
  DrawnSample drawn{sample->image, sample->key + (flip ? "-flip" : "")};
  const int64_t width = drawn.image.width;
  for (int64_t y = 0; flip && y < drawn.image.height; ++y) mirror(drawn.image.row(y), width, 3);
  if (sample->masks.empty()) return drawn;
  const auto count = static_cast<size_t>(segment_of(recipe_).prompts);
  for (const size_t index : drawn_indices(sample->masks.size(), count, random)) {
    sam::BinaryMask mask = sam::decode(sample->masks[index]);
    for (int64_t y = 0; flip && y < image_size_; ++y) mirror(mask.row(y), width, 1);
    std::optional<DrawnPrompt> prompt = draw_prompt(mask, random);
    if (!prompt) continue;
    const uint64_t stream = static_cast<uint64_t>(position) * count + drawn.prompts.size();
    prompt->random = RandomStream(random_key("segment corrections", key), stream);
    drawn.prompts.push_back(std::move(*prompt));
  }
  return drawn;
}

}  // namespace vitrail::train
