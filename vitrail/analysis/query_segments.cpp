// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/query_segments.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::analysis {
namespace {

constexpr int64_t kPixelsPerRange = 1 << 14;

void check_output(const QueryMasks& output) {
  const Tensor &classes = output.classes, &masks = output.masks;
  if (classes.rank() != 2 || masks.rank() != 3 || classes.size(0) != masks.size(0) || classes.size(1) < 2)
    throw Error("queries", "class logits [Q, C + 1] and mask logits [Q, h, w]",
                str(classes.shape(), " and ", masks.shape()));
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

struct Best {
  int64_t label = 0;
  float score = 0;
};

// The best of the first `count` classes of each query.
std::vector<Best> best_classes(const Tensor& logits, int64_t count) {
  const Tensor probabilities = ops::softmax(logits);
  std::vector<Best> result;
  for (int64_t q = 0; q < logits.size(0); ++q) {
    const float* const row = probabilities.data<float>() + q * logits.size(1);
    const float* const best = std::max_element(row, row + count);
    result.push_back({best - row, *best});
  }
  return result;
}

// The logits of a query's mask at the image's size: enlarged to the input's size, cut to the image, and resized.
Tensor mask_of(const QueryMasks& output, int64_t query, const QueryPlacement& placement) {
  const Tensor input = ops::resize_bilinear(output.masks.narrow(0, query, 1), placement.side, placement.side);
  const Tensor inside = input.narrow(1, 0, placement.resized[0]).narrow(2, 0, placement.resized[1]);
  return ops::resize_bilinear(inside, placement.size[0], placement.size[1]);
}

// The number of pixels of the image.
size_t pixels_of(const QueryPlacement& placement) { return static_cast<size_t>(placement.size[0] * placement.size[1]); }

// What the kept queries win of the image.
struct Contest {
  std::vector<uint32_t> owner;                // the index in `kept` of the query that has the pixel
  std::vector<uint8_t> inside;                // whether the owner's probability reaches the threshold
  std::vector<int64_t> original, own, final;  // pixel counts: of a query's mask, of what it owns, of both
};

Contest contest_of(const QueryMasks& output, const std::vector<int64_t>& kept, const std::vector<Best>& classes,
                   const QueryPlacement& placement, float mask_threshold) {
  const size_t pixels = pixels_of(placement), count = kept.size();
  Contest result{std::vector<uint32_t>(pixels), std::vector<uint8_t>(pixels), std::vector<int64_t>(count),
                 std::vector<int64_t>(count), std::vector<int64_t>(count)};
  std::vector<float> best(pixels, -1);
  for (size_t k = 0; k < count; ++k) {
    const Tensor mask = mask_of(output, kept[k], placement);
    const std::span probabilities(mask.data<float>(), pixels);
    const float score = classes[static_cast<size_t>(kept[k])].score;
    parallel_for(0, static_cast<int64_t>(pixels), kPixelsPerRange, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        const float p = probabilities[i] = sigmoid(probabilities[i]);
        if (!(score * p > best[i])) continue;
        best[i] = score * p;
        result.owner[i] = static_cast<uint32_t>(k);
        result.inside[i] = p >= mask_threshold;
      }
    });
    result.original[k] = std::ranges::count_if(probabilities, [&](float p) { return p >= mask_threshold; });
  }
  for (size_t i = 0; i < pixels; ++i) {
    ++result.own[result.owner[i]];
    result.final[result.owner[i]] += result.inside[i];
  }
  return result;
}

}  // namespace

QuerySegments panoptic_segments(const QueryMasks& output, const QueryPlacement& placement,
                                const PanopticOptions& options) {
  check_output(output);
  const int64_t nothing = output.classes.size(1) - 1;
  const std::vector<Best> classes = best_classes(output.classes, nothing + 1);
  std::vector<int64_t> kept;
  for (size_t q = 0; q < classes.size(); ++q) {
    if (classes[q].label != nothing && classes[q].score > options.threshold) kept.push_back(static_cast<int64_t>(q));
  }
  QuerySegments result{std::vector<int32_t>(pixels_of(placement)), {}};
  if (kept.empty()) return result;
  const Contest contest = contest_of(output, kept, classes, placement, options.mask_threshold);
  std::vector<int32_t> ids(kept.size());
  for (size_t k = 0; k < kept.size(); ++k) {
    const float share = static_cast<float>(contest.own[k]) / static_cast<float>(contest.original[k]);
    if (contest.final[k] == 0 || !(share > options.overlap_threshold)) continue;
    const auto [label, score] = classes[static_cast<size_t>(kept[k])];
    const bool stuff = std::ranges::find(options.stuff_classes, label) != options.stuff_classes.end();
    const auto same = std::ranges::find(result.segments, label, &QuerySegment::label);
    if (stuff && same != result.segments.end()) {
      ids[k] = same->id;
      continue;
    }
    ids[k] = static_cast<int32_t>(result.segments.size()) + 1;
    result.segments.push_back({ids[k], label, score});
  }
  for (size_t i = 0; i < result.ids.size(); ++i) {
    if (contest.inside[i]) result.ids[i] = ids[contest.owner[i]];
  }
  return result;
}

QuerySegments instance_segments(const QueryMasks& output, const QueryPlacement& placement, float threshold) {
  check_output(output);
  const std::vector<Best> classes = best_classes(output.classes, output.classes.size(1) - 1);
  QuerySegments result{std::vector<int32_t>(pixels_of(placement)), {}};
  for (size_t q = 0; q < classes.size(); ++q) {
    if (classes[q].score < threshold) continue;  // the mean probability is at most 1
    const Tensor mask = mask_of(output, static_cast<int64_t>(q), placement);
    const std::span logits(mask.data<float>(), result.ids.size());
    double sum = 0;
    int64_t count = 0;
    for (const float logit : logits) {
      if (!(logit > 0)) continue;
      sum += sigmoid(logit);
      ++count;
    }
    const float score = classes[q].score * static_cast<float>(sum / (static_cast<double>(count) + 1e-6));
    if (count == 0 || score < threshold) continue;
    const auto id = static_cast<int32_t>(result.segments.size()) + 1;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > 0) result.ids[i] = id;
    }
    result.segments.push_back({id, classes[q].label, score});
  }
  std::vector<bool> visible(result.segments.size() + 1);
  for (const int32_t id : result.ids) visible[static_cast<size_t>(id)] = true;
  std::erase_if(result.segments, [&](const QuerySegment& each) { return !visible[static_cast<size_t>(each.id)]; });
  return result;
}

namespace {

// Σ_q class probability · mask probability at the input's size: [C, side · side].  A few masks at a time are enlarged.
Tensor class_scores(const QueryMasks& output, int64_t side) {
  constexpr int64_t kQueriesAtATime = 32;
  const int64_t queries = output.classes.size(0), classes = output.classes.size(1) - 1;
  const Tensor probabilities = ops::softmax(output.classes).narrow(1, 0, classes);
  Tensor result;
  for (int64_t first = 0; first < queries; first += kQueriesAtATime) {
    const int64_t count = std::min(kQueriesAtATime, queries - first);
    const Tensor masks = ops::resize_bilinear(output.masks.narrow(0, first, count), side, side);
    float* const values = masks.data<float>();
    parallel_for(0, masks.numel(), kPixelsPerRange, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) values[i] = sigmoid(values[i]);
    });
    const Tensor part = ops::matmul(probabilities.narrow(0, first, count).transpose(0, 1).contiguous(),
                                    masks.view({count, side * side}));
    result = result.defined() ? ops::add(result, part) : part;
  }
  return result;
}

}  // namespace

std::vector<int32_t> semantic_labels(const std::vector<QueryMasks>& crops, const std::vector<int64_t>& starts,
                                     bool vertical, const QueryPlacement& placement) {
  if (crops.empty() || crops.size() != starts.size())
    throw Error("crops", str("a start for each of ", crops.size(), ", at least one"), str(starts.size()));
  for (const QueryMasks& crop : crops) check_output(crop);
  const auto [rows, columns] = placement.resized;
  const int64_t longer = vertical ? rows : columns, side = placement.side, classes = crops[0].classes.size(1) - 1;
  const Tensor sums = Tensor::zeros({classes, rows, columns});
  std::vector<float> counts(static_cast<size_t>(longer));
  for (size_t i = 0; i < crops.size(); ++i) {
    const int64_t start = starts[i], length = std::min(side, longer - start);
    const Tensor scores = class_scores(crops[i], side).view({classes, side, side});
    const Tensor place = sums.narrow(vertical ? 1 : 2, start, length);
    place.copy_(ops::add(place, scores.narrow(1, 0, place.size(1)).narrow(2, 0, place.size(2))));
    for (int64_t at = start; at < start + length; ++at) ++counts[static_cast<size_t>(at)];
  }
  std::vector<int32_t> labels(pixels_of(placement));
  std::vector<float> best(labels.size(), -1);
  for (int64_t c = 0; c < classes; ++c) {
    float* const plane = sums.data<float>() + c * rows * columns;
    for (int64_t i = 0; i < rows * columns; ++i)
      plane[i] /= counts[static_cast<size_t>(vertical ? i / columns : i % columns)];
    const Tensor resized = ops::resize_bilinear(sums.narrow(0, c, 1), placement.size[0], placement.size[1]);
    const float* const values = resized.data<float>();
    parallel_for(0, resized.numel(), kPixelsPerRange, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        if (!(values[i] > best[i])) continue;
        best[i] = values[i];
        labels[i] = static_cast<int32_t>(c);
      }
    });
  }
  return labels;
}

}  // namespace vitrail::analysis
