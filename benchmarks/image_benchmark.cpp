// SPDX-License-Identifier: Apache-2.0
// JPEG photographs decoded and brought to 224 × 224 as DeiT-Tiny wants them, as `vitrail classify` does it before the
// model.  Argument: threads.  The folder is VITRAIL_PICTURES, else the shared assets' photographs.
#include <cstdlib>

#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/input_paths.h"
#include "vitrail/data/ordered_prefetch.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/transform.h"

namespace vitrail::benchmarks {
namespace {

std::string folder() {
  if (const char* pictures = std::getenv("VITRAIL_PICTURES")) return pictures;
  const char* assets = std::getenv("VITRAIL_ASSETS");
  return std::string(assets != nullptr ? assets : "../shared/assets") + "/images/photos";
}

void photographs(benchmark::State& state) {
  const std::vector<std::string> paths = data::list_images(folder());
  if (paths.empty()) return state.SkipWithError("no pictures: set VITRAIL_PICTURES or VITRAIL_ASSETS");
  const int threads = static_cast<int>(state.range(0));
  const image::EvalTransform transform{.size = {224, 224}, .crop_pct = 0.9};
  for (auto _ : state) {
    data::OrderedPrefetch<Tensor> pictures(
        paths.size(), [&](size_t i) { return image::apply(image::read_image(paths[i]), transform); },
        {.threads = threads, .in_flight = static_cast<size_t>(16 + threads)});
    for (size_t i = 0; i < paths.size(); ++i) benchmark::DoNotOptimize(pictures.next());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(paths.size()));
}
BENCHMARK(photographs)->Arg(1)->Arg(available_threads())->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail::benchmarks
