// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019) with their soft targets, as timm's Mixup does them.
//
// Position p of a batch of B is mixed with position B − 1 − p, so pairs are closed: mixing needs both pictures of a
// pair and no others.
#include <cstdint>
#include <vector>

namespace vitrail::data {

struct MixupOptions {
  enum class Mode { batch, element };  // one draw a batch, or one a picture
  double mixup_alpha = 0;              // λ ~ Beta(α, α); 0: no mixup
  double cutmix_alpha = 0;             // 0: no cutmix
  double probability = 1;              // that a batch (element mode: a picture) is mixed at all
  double switch_probability = 0.5;     // of cutmix, where both are on
  Mode mode = Mode::batch;
  double label_smoothing = 0;  // ε: off = ε / classes, on = 1 − ε + off, as timm
  int64_t classes = 0;         // columns of the targets; at least 2 where mixing is on
  int64_t off_epoch = -1;      // from this epoch on nothing is mixed (targets are hard again); negative: never

  bool any() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
  bool active(int64_t epoch) const { return any() && (off_epoch < 0 || epoch < off_epoch); }
};

// Throws Error naming the option that is out of its range.
void check(const MixupOptions& options);

// What happens to one position: its picture becomes λ · own + (1 − λ) · partner, or (cut) its rectangle
// [top, bottom) × [left, right) becomes the partner's, λ being the share that is left.
struct MixupParams {
  double lambda = 1;  // of the own label
  bool cut = false;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// The draw for a position of the global batch: a function of (seed, epoch, step) and, in element mode, the position.
MixupParams draw_mixup(const MixupOptions& options, uint64_t seed, int64_t epoch, int64_t step, int64_t position,
                       int64_t height, int64_t width);

// Mixes a pair in place: first and second are pictures [channels, height, width]; each is mixed with what the other
// was. A picture that is its own partner (first == second) stays as it is.
void mix_pair(const MixupParams& first_mix, const MixupParams& second_mix, int64_t channels, int64_t height,
              int64_t width, float* first, float* second);

// out[classes] = λ · smooth(own) + (1 − λ) · smooth(partner).
void mixup_target(const MixupOptions& options, double lambda, int64_t own, int64_t partner, float* out);

}  // namespace vitrail::data
