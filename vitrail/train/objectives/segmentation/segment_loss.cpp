// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_loss_internal.h"

#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/loss.h"
#include "vitrail/ops/mask_loss.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::train {
namespace {

// The sum of all elements.
Tensor sum_of(const Tensor& x) {
  const Tensor flat = ops::contiguous(x).view({x.numel()});
  return ops::weighted_sum({ops::mean(flat, 0)}, {static_cast<double>(x.numel())});
}

// Intersection over union of each mask with its target; 1 if both are empty.
template <class T>
Tensor iou_of(const Tensor& logits, const Tensor& targets) {
  const int64_t batch = logits.size(0), masks = logits.size(1), pixels = logits.size(2);
  Tensor iou = Tensor::empty({batch, masks}, logits.dtype());
  for (int64_t r = 0; r < batch * masks; ++r) {
    const T* const x = logits.data<T>() + r * pixels;
    const T* const t = targets.data<T>() + r / masks * pixels;
    int64_t both = 0, either = 0;
    for (int64_t i = 0; i < pixels; ++i) {
      both += x[i] > 0 && t[i] > 0;
      either += x[i] > 0 || t[i] > 0;
    }
    iou.data<T>()[r] = either == 0 ? T(1) : static_cast<T>(both) / static_cast<T>(either);
  }
  return iou;
}

// 1 / B for mask 0 and for the best one of the others, else 0.
Tensor selection(const Tensor& mask_loss, std::vector<int64_t>& best) {
  const Tensor values = mask_loss.detach().to(DType::f64).contiguous();
  const int64_t batch = values.size(0), masks = values.size(1);
  Tensor weights = Tensor::zeros(values.shape(), DType::f64);
  for (int64_t b = 0; b < batch; ++b) {
    const double* const row = values.data<double>() + b * masks;
    int64_t index = 1;
    for (int64_t m = 2; m < masks; ++m) {
      if (row[m] < row[index]) index = m;
    }
    best.push_back(index);
    for (const int64_t m : {int64_t{0}, index}) {
      weights.data<double>()[b * masks + m] = 1 / static_cast<double>(batch);
    }
  }
  return weights.to(mask_loss.dtype());
}

}  // namespace

SegmentLoss segment_loss(const models::SamMasks& masks, const Tensor& targets, const SegmentRecipe& recipe) {
  const int64_t batch = masks.logits.size(0), count = masks.logits.size(1);
  const int64_t pixels = masks.logits.size(2) * masks.logits.size(3);
  const Tensor logits = ops::contiguous(masks.logits).view({batch, count, pixels});
  const Tensor flat = targets.to(logits.dtype()).contiguous().view({batch, pixels});
  const Tensor focal = ops::focal_loss(logits, flat, {.alpha = recipe.focal_alpha, .gamma = recipe.focal_gamma});
  const Tensor dice = ops::dice_loss(logits, flat);
  const auto weighted = [](const Tensor& x, double weight) {
    return ops::mul(x, Tensor::full({1, 1}, weight, x.dtype()));
  };
  const Tensor mask_loss = ops::add(weighted(focal, recipe.focal_weight), weighted(dice, recipe.dice_weight));

  SegmentLoss result;
  const Tensor plain = logits.detach().contiguous();
  result.iou = plain.dtype() == DType::f64 ? iou_of<double>(plain, flat) : iou_of<float>(plain, flat);
  const Tensor minus_one = Tensor::full({1, 1}, -1, result.iou.dtype());
  const Tensor error = ops::add(masks.iou, ops::mul(result.iou, minus_one));
  const Tensor selected = sum_of(ops::mul(mask_loss, selection(mask_loss, result.best)));
  const Tensor squared = sum_of(ops::mul(error, error));
  result.loss = ops::weighted_sum({selected, squared}, {1, recipe.iou_weight / static_cast<double>(batch * count)});
  return result;
}

}  // namespace vitrail::train
