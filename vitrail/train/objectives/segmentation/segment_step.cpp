// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_step_internal.h"

#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/precision.h"
#include "vitrail/ops/tokens.h"
#include "vitrail/sam/image_input_internal.h"

namespace vitrail::train {

struct SegmentStep::Prompts {
  std::vector<DrawnPrompt*> each = {};
  std::vector<int64_t> image = {};  // position of each prompt's image in the batch
  Tensor targets = {};              // [B, m, m]
  Tensor mask_logits = {};          // [B, 1, m, m], undefined in the first round
  int64_t size() const { return static_cast<int64_t>(each.size()); }
};

namespace {

// Points, then the padding point or the corners of a box, as the predictor arranges them.
struct SparsePrompts {
  std::vector<double> coordinates = {};
  std::vector<models::SamPoint> kinds = {};

  void add(double x, double y, models::SamPoint kind) {
    coordinates.insert(coordinates.end(), {x, y});
    kinds.push_back(kind);
  }
  void add(const DrawnPrompt& prompt) {
    for (const sam::Point& point : prompt.points) {
      add(point.x, point.y, point.label == 1 ? models::SamPoint::inside : models::SamPoint::outside);
    }
    if (prompt.box) {
      add(prompt.box->x0, prompt.box->y0, models::SamPoint::top_left);
      add(prompt.box->x1, prompt.box->y1, models::SamPoint::bottom_right);
    }
  }
  // A box alone has as many tokens as a click with its padding point.
  void pad(const DrawnPrompt& prompt) {
    if (!prompt.box) add(0, 0, models::SamPoint::padding);
  }
};

Tensor targets_of(const std::vector<DrawnPrompt*>& prompts) {
  const sam::BinaryMask& first = prompts[0]->target;
  Tensor targets = Tensor::empty({static_cast<int64_t>(prompts.size()), first.height, first.width});
  float* to = targets.data<float>();
  for (const DrawnPrompt* prompt : prompts)
    to = std::copy(prompt->target.pixels.begin(), prompt->target.pixels.end(), to);
  return targets;
}

// The mask of the highest predicted IoU among those of different extent.
int64_t preferred(const float* iou, int64_t masks) { return std::max_element(iou + 1, iou + masks) - iou; }

}  // namespace

SegmentStep::SegmentStep(const Recipe& recipe, const models::Sam& model, const std::filesystem::path& cache)
    : recipe_(recipe), model_(model), positions_(model.prompt_encoder().grid_positions()) {
  // The prefix keeps these files from being taken for the embeddings of `vitrail segment --cache`.
  if (!segment_of(recipe).train_encoder) cache_.emplace(cache, "trunk-" + models::sam_trunk_digest(model));
}

// What the frozen blocks compute for one image, [1, h, w, C], rounded to f16.  One image at a time, so that the values
// do not depend on the batch.
Tensor SegmentStep::cached_features(const DrawnSample& sample) const {
  std::optional<sam::ImageEmbedding> found = cache_->find(sample.key);
  if (!found) {
    const autograd::NoGrad no_grad;
    const int64_t size = model_.config().encoder.image_size();
    const Tensor input = Tensor::empty({1, 3, size, size});
    sam::input_frame(model_.config()).write(sample.image, input.data<float>());
    const Tensor map = model_.image_encoder().trunk(input).select(0, 0).permute({2, 0, 1}).contiguous();
    found = cache_->add(sample.key, {map, sample.image.width, sample.image.height});
  }
  return found->values.permute({1, 2, 0}).contiguous().unsqueeze(0);
}

// The output of the image encoder's blocks, [B, h, w, C].
Tensor SegmentStep::features(const std::vector<DrawnSample>& batch) const {
  if (cache_) {
    std::vector<Tensor> maps;
    for (const DrawnSample& sample : batch) maps.push_back(cached_features(sample));
    return ops::cat(maps, 0);
  }
  const sam::InputFrame frame = sam::input_frame(model_.config());
  const int64_t size = frame.size;
  const Tensor input = Tensor::empty({static_cast<int64_t>(batch.size()), 3, size, size});
  for (size_t i = 0; i < batch.size(); ++i) {
    frame.write(batch[i].image, input.data<float>() + static_cast<int64_t>(i) * 3 * size * size);
  }
  return model_.image_encoder().trunk(input);
}

// images [B, h, w, C]: the embedding of each prompt's image.
models::SamMasks SegmentStep::predict(const Tensor& images, const Prompts& prompts) const {
  SparsePrompts sparse;
  for (const DrawnPrompt* prompt : prompts.each) {
    sparse.add(*prompt);
    sparse.pad(*prompt);
  }
  const int64_t tokens = static_cast<int64_t>(sparse.kinds.size()) / prompts.size();
  const models::SamPromptEncoder& encoder = model_.prompt_encoder();
  const Tensor dense = prompts.mask_logits.defined() ? encoder.mask(prompts.mask_logits) : encoder.no_mask();
  const Tensor points =
      encoder.points(Tensor::from<double>({prompts.size(), tokens, 2}, sparse.coordinates), sparse.kinds);
  const models::SamMasks masks =
      model_.mask_decoder().forward(ops::add(images, dense), positions_, model_.mask_decoder().tokens(points));
  return {masks.logits.to(DType::f32), masks.iou.to(DType::f32)};  // bf16 in mixed precision
}

// Adds a click where the preferred mask is wrong, and makes its logits the mask prompt.
void SegmentStep::correct(const models::SamMasks& masks, Prompts& prompts) const {
  const Tensor logits = masks.logits.detach().contiguous(), iou = masks.iou.detach().contiguous();
  const int64_t count = logits.size(1), size = logits.size(2);
  const double cell = static_cast<double>(model_.config().encoder.image_size()) / static_cast<double>(size);
  Tensor chosen = Tensor::empty({prompts.size(), 1, size, size});
  for (int64_t i = 0; i < prompts.size(); ++i) {
    DrawnPrompt& prompt = *prompts.each[static_cast<size_t>(i)];
    const Tensor mask = logits.select(0, i).select(0, preferred(iou.data<float>() + i * count, count));
    std::copy_n(mask.data<float>(), size * size, chosen.data<float>() + i * size * size);
    const std::optional<sam::Point> click = correction_click(sam::threshold(mask), prompt.target, cell, prompt.random);
    // All prompts of a batch have as many tokens: a mask without errors gets another click inside.
    prompt.points.push_back(click.value_or(
        correction_click(sam::make_mask(size, size), prompt.target, cell, prompt.random).value_or(sam::Point{})));
  }
  prompts.mask_logits = chosen;
}

BatchResult SegmentStep::accumulate(std::vector<DrawnSample> batch, const Backward& backward) {
  std::erase_if(batch, [](const DrawnSample& sample) { return sample.prompts.empty(); });
  BatchResult result{.images = static_cast<int64_t>(batch.size())};
  if (batch.empty()) return result;
  Prompts prompts;
  for (size_t i = 0; i < batch.size(); ++i) {
    for (DrawnPrompt& prompt : batch[i].prompts) {
      prompts.each.push_back(&prompt);
      prompts.image.push_back(static_cast<int64_t>(i));
    }
  }
  prompts.targets = targets_of(prompts.each);
  result.weight = static_cast<double>(prompts.size());
  const ops::MixedPrecision precision(recipe_.precision == "bf16" ? DType::bf16 : DType::f32);
  const Tensor maps = model_.image_encoder().neck(features(batch));
  const int64_t cells = maps.numel() / maps.size(0), dim = maps.size(3);
  const Tensor images = ops::embedding(Tensor::from<int64_t>({prompts.size()}, prompts.image),
                                       ops::contiguous(maps).view({maps.size(0), cells}))
                            .view({prompts.size(), maps.size(1), maps.size(2), dim});
  const int64_t rounds = segment_of(recipe_).rounds;
  std::vector<Tensor> losses;
  for (int64_t round = 0; round < rounds; ++round) {
    const models::SamMasks masks = predict(images, prompts);
    losses.push_back(segment_loss(masks, prompts.targets, segment_of(recipe_)).loss);
    if (round + 1 < rounds) correct(masks, prompts);
  }
  const std::vector<double> weights(losses.size(), 1 / static_cast<double>(rounds));
  return backward(ops::weighted_sum(losses, weights), result);
}

}  // namespace vitrail::train
