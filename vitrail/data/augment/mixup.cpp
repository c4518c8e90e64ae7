// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/mixup.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {
namespace {

// The logarithm of a Gamma(α) draw: Marsaglia & Tsang 2000 for α + 1, times U^(1/α).  In logarithms, because a small α
// gives values below the range of a double.
double log_gamma_draw(double alpha, RandomStream& random) {
  const double d = alpha + 1 - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v) + std::log(1 - random.uniform()) / alpha;
    }
  }
}

double beta_draw(double alpha, RandomStream& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

// timm's rand_bbox with correct_lam: a box of the image's aspect ratio with a uniform centre, clipped to the image; λ
// becomes the fraction outside the clipped box.
MixupParams draw_cutmix(double lambda, int64_t height, int64_t width, RandomStream& random) {
  const double ratio = std::sqrt(1 - lambda);
  const auto cut_height = static_cast<int64_t>(static_cast<double>(height) * ratio);
  const auto cut_width = static_cast<int64_t>(static_cast<double>(width) * ratio);
  const int64_t y = random_index(random, height), x = random_index(random, width);
  MixupParams params{.cut = true};
  params.top = std::clamp<int64_t>(y - cut_height / 2, 0, height);
  params.bottom = std::clamp<int64_t>(y + (cut_height + 1) / 2, 0, height);
  params.left = std::clamp<int64_t>(x - cut_width / 2, 0, width);
  params.right = std::clamp<int64_t>(x + (cut_width + 1) / 2, 0, width);
  const int64_t area = (params.bottom - params.top) * (params.right - params.left);
  params.lambda = 1 - static_cast<double>(area) / static_cast<double>(height * width);
  return params;
}

// Mixes `own` in place with `partner`.
void mix_into(const MixupParams& params, int64_t channels, int64_t height, int64_t width, float* own,
              const float* partner) {
  if (params.cut) {
    for (int64_t row = 0; row < channels * height; ++row) {
      const int64_t y = row % height;
      if (y < params.top || y >= params.bottom) continue;
      std::copy(partner + row * width + params.left, partner + row * width + params.right,
                own + row * width + params.left);
    }
    return;
  }
  const auto keep = static_cast<float>(params.lambda), take = static_cast<float>(1 - params.lambda);
  for (int64_t i = 0; i < channels * height * width; ++i) own[i] = own[i] * keep + partner[i] * take;
}

}  // namespace

void check(const MixupOptions& options) {
  const auto check_probability = [](const char* name, double value) {
    if (!(value >= 0 && value <= 1)) throw Error(str("mix.", name), "0 to 1", str(value));
  };
  if (!(options.mixup_alpha >= 0)) throw Error("mix.mixup_alpha", "at least 0", str(options.mixup_alpha));
  if (!(options.cutmix_alpha >= 0)) throw Error("mix.cutmix_alpha", "at least 0", str(options.cutmix_alpha));
  check_probability("probability", options.probability);
  check_probability("switch_probability", options.switch_probability);
  check_probability("label_smoothing", options.label_smoothing);
  if (options.any() && options.classes < 2) throw Error("mix.classes", "at least 2", str(options.classes));
}

MixupParams draw_mixup(const MixupOptions& options, uint64_t seed, int64_t epoch, int64_t step, int64_t position,
                       int64_t height, int64_t width) {
  if (!options.active(epoch)) return {};
  const uint64_t key =
      random_key("mix", random_key("epoch", seed, static_cast<uint64_t>(epoch)), static_cast<uint64_t>(step));
  const bool per_batch = options.mode == MixupOptions::Mode::batch;
  RandomStream random(key, per_batch ? 0 : static_cast<uint64_t>(position) + 1);
  if (random.uniform() >= options.probability) return {};
  const bool both = options.mixup_alpha > 0 && options.cutmix_alpha > 0;
  const bool cut = both ? random.uniform() < options.switch_probability : options.cutmix_alpha > 0;
  const double lambda = beta_draw(cut ? options.cutmix_alpha : options.mixup_alpha, random);
  return cut ? draw_cutmix(lambda, height, width, random) : MixupParams{.lambda = lambda};
}

void mix_pair(const MixupParams& first_params, const MixupParams& second_params, int64_t channels, int64_t height,
              int64_t width, float* first, float* second) {
  if (first == second) return;
  const int64_t size = channels * height * width;
  if (!first_params.cut && !second_params.cut) {
    const auto keep_first = static_cast<float>(first_params.lambda),
               take_first = static_cast<float>(1 - first_params.lambda);
    const auto keep_second = static_cast<float>(second_params.lambda),
               take_second = static_cast<float>(1 - second_params.lambda);
    for (int64_t i = 0; i < size; ++i) {
      const float a = first[i], b = second[i];
      first[i] = a * keep_first + b * take_first;
      second[i] = b * keep_second + a * take_second;
    }
    return;
  }
  const std::vector<float> original(first, first + size);
  mix_into(first_params, channels, height, width, first, second);
  mix_into(second_params, channels, height, width, second, original.data());
}

void mixup_target(const MixupOptions& options, double lambda, int64_t own, int64_t partner, float* out) {
  const double off = options.label_smoothing / static_cast<double>(options.classes);
  const double on = 1 - options.label_smoothing;
  std::fill(out, out + options.classes, static_cast<float>(off));
  if (own == partner) {
    out[own] = static_cast<float>(on + off);
    return;
  }
  out[own] = static_cast<float>(on * lambda + off);
  out[partner] = static_cast<float>(on * (1 - lambda) + off);
}

}  // namespace vitrail::data
