// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019) with soft targets, as timm's Mixup computes them.
//
// Position p of a batch of B images is mixed with position B − 1 − p, so mixing needs only the two images of a pair.
#include <cstdint>
#include <vector>

namespace vitrail::data {

struct MixupOptions {
  enum class Mode { batch, element };  // one draw per batch, or one per image
  double mixup_alpha = 0;              // λ ~ Beta(α, α); 0: no mixup
  double cutmix_alpha = 0;             // λ ~ Beta(α, α); 0: no CutMix
  double probability = 1;              // that a batch (element mode: an image) is mixed
  double switch_probability = 0.5;     // probability of CutMix if both are on
  Mode mode = Mode::batch;
  double label_smoothing = 0;  // ε: off = ε / classes, on = 1 − ε + off, as in timm
  int64_t classes = 0;         // columns of the targets; at least 2 if mixing is on
  int64_t off_epoch = -1;      // first epoch without mixing; its targets are class indices.  Negative: never

  bool any() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
  bool active(int64_t epoch) const { return any() && (off_epoch < 0 || epoch < off_epoch); }
};

// Throws Error naming the option that is out of its range.
void check(const MixupOptions& options);

// How one image is mixed.  Mixup: λ · own + (1 − λ) · partner.  CutMix: the rectangle [top, bottom) × [left, right) is
// copied from the partner, and λ is the fraction of the image that stays.
struct MixupParams {
  double lambda = 1;  // weight of the own label
  bool cut = false;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// The draw for a position of the global batch, keyed by (seed, epoch, step) and in element mode by the position.
MixupParams draw_mixup(const MixupOptions& options, uint64_t seed, int64_t epoch, int64_t step, int64_t position,
                       int64_t height, int64_t width);

// Mixes a pair of images [channels, height, width] in place; each is mixed with the other's original.  The middle image
// of an odd batch is its own partner (first == second) and does not change.
void mix_pair(const MixupParams& first_params, const MixupParams& second_params, int64_t channels, int64_t height,
              int64_t width, float* first, float* second);

// Soft target, as timm's mixup_target: out[classes] = λ · smooth(own) + (1 − λ) · smooth(partner).
void mixup_target(const MixupOptions& options, double lambda, int64_t own, int64_t partner, float* out);

}  // namespace vitrail::data
