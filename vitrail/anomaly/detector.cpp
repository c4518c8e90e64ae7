// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/detector.h"

#include "vitrail/base/parallel.h"
#include "vitrail/image/gaussian.h"
#include "vitrail/ops/resize.h"

namespace vitrail::anomaly {
namespace {

constexpr double kSigma = 4;  // pixels, as PatchCore's

}  // namespace

Detector::Detector(const models::ModelFiles& file, const ModelOptions& options)
    : bank_(read_bank(file.first)),
      model_(std::make_unique<Model>(open_model(find_model(bank_, file.weights.front()), bank_.image_size), options)),
      search_(bank_.patches, bank_.options.method),
      request_(feature_request(bank_.options)),
      grid_(model_->session().model().grid_of(bank_.image_size[0], bank_.image_size[1])) {}

PatchDistances Detector::run(const image::ImageView& image) const {
  const Tensor grid = model_->run({&image, 1}, request_)[0].select(0, 0);
  const ComputeTeam team(model_->session().threads());
  return search_.distances(patches_of(grid, bank_.options));
}

Tensor Detector::map(const PatchDistances& patches, int64_t height, int64_t width) const {
  const ComputeTeam team(model_->session().threads());
  const Tensor grid = Tensor::from<float>({1, 1, grid_[0], grid_[1]}, patches.distances);
  return image::gaussian_filter(ops::resize_bilinear(grid, height, width).select(0, 0).select(0, 0), kSigma);
}

}  // namespace vitrail::anomaly
