#pragma once
#include <vector>

#include "vitrail/image/normalize.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {

// Makes a patch embedding read pixels as the whole numbers that they were before normalisation: bytes, less the one
// that became nearest to zero.  bf16 holds these exactly; of a normalised pixel it rounds the last bits away, and
// neighbours that are alike are rounded alike.  That was most of what a bf16 pass was off by: DeiT-Tiny's logits are
// now within 0.7 % of fp32's, before 1.3 %.  It costs nothing: the scale goes into the weight, the offset into the
// bias, and pixels are scaled back as they are cut into patches.  Values that were no bytes lose no more than before.
// The weight is rounded to bf16 here, for pictures in which neighbours are alike.
class WholePixels {
 public:
  // weight [D, C, P_h, P_w] and bias [D], or undefined, of the patch embedding; scales: one a channel, or one for all.
  // Takes the weight over: its memory is given back.  Throws Error for scales that fit no channels or have no step.
  WholePixels(const Tensor& weight, const Tensor& bias, const std::vector<image::PixelScale>& scales);

  // Puts the scaled product in the place of the one that was recorded.
  void rewrite(std::vector<ops::Operation>& operations) const;

  const Tensor& weight() const { return weight_; }  // [D, C·P_h·P_w], bf16 numbers: what rewrite() puts there

 private:
  std::shared_ptr<Storage> original_;
  Tensor weight_, bias_, factor_, offset_;
};

}  // namespace vitrail::infer
