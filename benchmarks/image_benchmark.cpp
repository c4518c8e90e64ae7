// SPDX-License-Identifier: Apache-2.0
// Decoding of JPEG photographs and the evaluation transform of DeiT-Tiny (224 × 224), as in `vitrail classify`.
// Argument: threads.  The images are those of the folder VITRAIL_IMAGES, or the photographs of the shared assets.
#include <cstdlib>

#include "benchmarks/kernel_benchmark.h"
#include "vitrail/base/parallel.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/transform.h"

namespace vitrail::benchmarks {
namespace {

std::string folder() {
  if (const char* images = std::getenv("VITRAIL_IMAGES")) return images;
  const char* assets = std::getenv("VITRAIL_ASSETS");
  return assets != nullptr ? std::string(assets) + "/images/photos" : "";
}

void photographs(benchmark::State& state) {
  const std::vector<std::string> paths = folder().empty() ? std::vector<std::string>() : data::list_images(folder());
  if (paths.empty()) return state.SkipWithError("no images: set VITRAIL_IMAGES or VITRAIL_ASSETS");
  const int threads = static_cast<int>(state.range(0));
  const image::EvalTransform transform{.size = {224, 224}, .crop_pct = 0.9};
  for (auto _ : state) {
    data::OrderedPrefetch<Tensor> images(paths.size(),
                                         [&](size_t i) { return image::apply(image::read_image(paths[i]), transform); },
                                         {.threads = threads, .in_flight = static_cast<size_t>(16 + threads)});
    for (size_t i = 0; i < paths.size(); ++i) benchmark::DoNotOptimize(images.next());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(paths.size()));
}
BENCHMARK(photographs)->Arg(1)->Arg(available_threads())->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail::benchmarks
