// SPDX-License-Identifier: Apache-2.0
// Throughput of the training loader on the shared assets, in images per second of processor time of all threads:
//   benchmarks --benchmark_filter=Loader
// benchmarks/augmentation.py measures the transforms of torchvision and timm on the same images.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "vitrail/data/loader/decoded_cache.h"
#include "vitrail/data/loader/loader.h"

namespace vitrail::data {
namespace {

std::filesystem::path assets() {
  const char* folder = std::getenv("VITRAIL_ASSETS");
  return folder != nullptr ? folder : "";
}

AugmentOptions crop_and_flip() {
  AugmentOptions options;
  options.padded_crop = PaddedCrop{};
  options.flip = Flip::random;
  return options;
}

LoaderOptions options_for(int64_t size, const std::string& policy) {
  LoaderOptions options;
  options.transform.size = {size, size};
  options.augment = crop_and_flip();
  options.augment->policy = policy;
  return options;
}

// Times whole epochs.  The first epoch is not timed: it fills the cache of decoded images.
void run(benchmark::State& state, const std::shared_ptr<const Dataset>& dataset, const LoaderOptions& options) {
  const auto cached = cache_decoded(dataset, int64_t{1} << 30);
  Loader loader(cached, options);
  loader.start(0);
  while (loader.next()) {
  }
  int64_t epoch = 1, images = 0;
  for (auto _ : state) {
    loader.start(epoch++);
    while (const auto batch = loader.next()) images += batch->images.size(0);
  }
  state.SetItemsProcessed(images);
}

std::shared_ptr<const Dataset> cifar() {
  static const std::shared_ptr<const Dataset> dataset =
      open_dataset(assets() / "cifar10/cifar10_jpeg.zip", {.split = "test"});
  return dataset;
}

void LoaderCifar(benchmark::State& state, const std::string& policy, int64_t size) {
  run(state, cifar(), options_for(size, policy));
}
BENCHMARK_CAPTURE(LoaderCifar, crop_flip, "", 32)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoaderCifar, timm_rand, "rand-m9-mstd0.5-inc1", 32)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoaderCifar, randaugment, "randaugment-n2-m9", 32)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoaderCifar, autoaugment, "autoaugment-cifar10", 32)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoaderCifar, crop_flip_at_96, "", 96)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

void LoaderCifarMixed(benchmark::State& state) {
  LoaderOptions options = options_for(32, "");
  options.mix.mixup_alpha = 0.8, options.mix.cutmix_alpha = 1, options.mix.classes = 10;
  options.augment->erasing.probability = 0.25;
  run(state, cifar(), options);
}
BENCHMARK(LoaderCifarMixed)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

// Reads JPEG photographs, decodes them and resizes a random crop to 224 × 224; decoded images are not cached.
void LoaderPhotos(benchmark::State& state, const std::string& policy) {
  const std::filesystem::path list = std::filesystem::temp_directory_path() / "vitrail_loader_benchmark.csv";
  {
    std::FILE* file = std::fopen(list.c_str(), "w");
    for (int repeat = 0; repeat < 4; ++repeat) {
      for (const auto& entry : std::filesystem::directory_iterator(assets() / "images/photos")) {
        std::fprintf(file, "%s,0\n", std::filesystem::absolute(entry.path()).c_str());
      }
    }
    std::fclose(file);
  }
  LoaderOptions options = options_for(224, policy);
  options.augment->padded_crop.reset();
  options.augment->random_resized_crop = RandomResizedCrop{};
  options.batch_size = 28;
  Loader loader(open_dataset(list, {}), options);
  int64_t epoch = 0, images = 0;
  for (auto _ : state) {
    loader.start(epoch++);
    while (const auto batch = loader.next()) images += batch->images.size(0);
  }
  state.SetItemsProcessed(images);
}
BENCHMARK_CAPTURE(LoaderPhotos, resized_crop, "")->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LoaderPhotos, timm_rand, "rand-m9-mstd0.5-inc1")
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail::data
