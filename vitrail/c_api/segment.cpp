// SPDX-License-Identifier: Apache-2.0
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/prompt_text.h"
#include "vitrail/tasks/segment/segment_model.h"

using namespace vitrail::c_api;

namespace vitrail::c_api {
namespace {

const sam::Predictor& predictor_of(const vitrail_model* model) {
  const tasks::LoadedModel& loaded = *required(model, "model").loaded;
  if (tasks::is_model<tasks::SegmentModel>(loaded)) return tasks::as_model<tasks::SegmentModel>(loaded).predictor();
  throw Error(model->path, "a checkpoint of Segment Anything", "another model");
}

sam::BinaryMask mask_of(const vitrail_prompt& options) {
  const std::array shape{options.mask_height, options.mask_width};
  const int64_t size = checked_numel(shape, "mask");
  if (size == 0) throw Error("mask", "at least one pixel", str(options.mask_width, "×", options.mask_height));
  return sam::mask_of_image({.width = options.mask_width,
                             .height = options.mask_height,
                             .channels = 1,
                             .pixels = {options.mask, options.mask + size}},
                            "mask");
}

sam::Prompt prompt_of(const vitrail_prompt* given, const sam::ImageEmbedding& image, int64_t mask_size) {
  required(given, "prompt");
  const vitrail_prompt options = options_or(given, VITRAIL_PROMPT_INIT, "vitrail_prompt");
  sam::Prompt prompt{.multimask = options.single == 0};
  if (options.num_points > 0) required(options.points, "points");
  for (size_t i = 0; i < options.num_points; ++i) {
    const int label = options.labels ? options.labels[i] : 1;
    prompt.points.push_back({options.points[2 * i], options.points[2 * i + 1], label});
  }
  if (const double* box = options.box) prompt.box = sam::Box{box[0], box[1], box[2], box[3]};
  if (options.mask_logits) {
    if (options.mask_size != mask_size) throw Error("mask_size", str(mask_size), str(options.mask_size));
    prompt.mask_logits = Tensor::empty({mask_size, mask_size});
    std::copy_n(options.mask_logits, mask_size * mask_size, prompt.mask_logits.data<float>());
  }
  if (options.mask && options.mask_logits) throw Error("mask", "a mask or logits of one", "both");
  if (options.mask)
    prompt.mask_logits = sam::logits_of_image_mask(mask_of(options), image.width, image.height, mask_size);
  return prompt;
}

// 1 and 0 at the image's size, [masks, height, width].
Tensor pixels_of(const sam::Predictor& predictor, const sam::Masks& masks, const sam::ImageEmbedding& image) {
  const int64_t count = masks.logits.size(0);
  Tensor result = Tensor::empty({count, image.height, image.width});
  float* to = result.data<float>();
  for (int64_t m = 0; m < count; ++m) {
    const Tensor logits = predictor.image_logits(masks.logits.select(0, m), image.width, image.height);
    to = std::ranges::copy(sam::threshold(logits).pixels, to).out;
  }
  return result;
}

}  // namespace
}  // namespace vitrail::c_api

extern "C" {

vitrail_status* vitrail_segment_embed(const vitrail_model* model, const vitrail_image* image,
                                      vitrail_image_embedding** embedding) {
  return guarded([&] {
    required(embedding, "embedding");
    *embedding = new vitrail_image_embedding{predictor_of(model).embed(required(image, "image").view)};
  });
}

void vitrail_image_embedding_free(vitrail_image_embedding* embedding) { delete embedding; }

vitrail_status* vitrail_segment(const vitrail_model* model, const vitrail_image_embedding* embedding,
                                const vitrail_prompt* prompt, vitrail_tensor** masks, vitrail_tensor** iou,
                                vitrail_tensor** logits) {
  return guarded([&] {
    const vitrail::sam::Predictor& predictor = predictor_of(model);
    const vitrail::sam::ImageEmbedding& image = required(embedding, "embedding").embedding;
    const vitrail::sam::Masks result = predictor.predict(image, prompt_of(prompt, image, predictor.mask_size()));
    const auto count = static_cast<int64_t>(result.iou.size());
    std::unique_ptr<vitrail_tensor> pixels, scores, values;  // nothing is given away if a later one fails
    if (masks) pixels.reset(new_tensor(pixels_of(predictor, result, image)));
    if (iou) scores.reset(new_tensor(vitrail::Tensor::from<float>({count}, result.iou)));
    if (logits) values.reset(new_tensor(result.logits));
    if (masks) *masks = pixels.release();
    if (iou) *iou = scores.release();
    if (logits) *logits = values.release();
  });
}

}  // extern "C"
