// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/coreset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/random.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::anomaly {
namespace {

constexpr int64_t kProjected = 128;     // dimensions (Johnson & Lindenstrauss: distances are kept within some percent)
constexpr int64_t kRowsPerTask = 1024;  // their distances are a few 100 KB of memory to read

// [n, 128], or the rows themselves if they are not wider.
Tensor projected(const Tensor& rows, int64_t seed) {
  const int64_t n = rows.size(0), width = rows.size(1);
  if (width <= kProjected) return rows.contiguous();
  const Tensor matrix = Tensor::empty({width, kProjected});
  RandomStream random(random_key("coreset projection", static_cast<uint64_t>(seed)));
  for (int64_t i = 0; i < matrix.numel(); ++i)
    matrix.data<float>()[i] = static_cast<float>(random.normal() / std::sqrt(static_cast<double>(kProjected)));
  const Tensor from = rows.contiguous(), out = Tensor::empty({n, kProjected});
  kernels::gemm(false, false, n, kProjected, width, from.data<float>(), width, matrix.data<float>(), kProjected, false,
                out.data<float>(), kProjected);
  return out;
}

float squared_distance(const float* a, const float* b, int64_t width) {
  float sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

struct Farthest {
  float distance = -1;
  int64_t row = 0;

  void take(const Farthest& other) {
    if (other.distance > distance || (other.distance == distance && other.row < row)) *this = other;
  }
};

// Lowers each row's squared distance to the chosen rows by that to `center`.  Returns the row with the largest.
Farthest update_distances(const Tensor& rows, int64_t center, std::vector<float>& distances) {
  const int64_t width = rows.size(1);
  const float *const values = rows.data<float>(), *const chosen = values + center * width;
  Farthest farthest;
  std::mutex mutex;
  parallel_for(0, rows.size(0), kRowsPerTask, [&](int64_t first, int64_t last) {
    Farthest mine;
    for (int64_t i = first; i < last; ++i) {
      float& distance = distances[static_cast<size_t>(i)];
      distance = std::min(distance, squared_distance(values + i * width, chosen, width));
      mine.take({distance, i});
    }
    const std::lock_guard lock(mutex);
    farthest.take(mine);
  });
  return farthest;
}

}  // namespace

std::vector<int64_t> coreset(const Tensor& rows, int64_t count, int64_t seed) {
  const int64_t n = rows.size(0);
  if (count < 1 || count > n) throw Error("coreset", str("1 to ", n, " rows"), str(count));
  std::vector<int64_t> chosen(static_cast<size_t>(count));
  std::iota(chosen.begin(), chosen.end(), int64_t{0});
  if (count == n) return chosen;
  const Tensor projection = projected(rows, seed);
  RandomStream random(random_key("coreset start", static_cast<uint64_t>(seed)));
  std::vector<float> distances(static_cast<size_t>(n), std::numeric_limits<float>::max());
  auto next = static_cast<int64_t>(random.uniform() * static_cast<double>(n));
  for (int64_t& row : chosen) {
    row = next;
    next = update_distances(projection, row, distances).row;
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace vitrail::anomaly
