// SPDX-License-Identifier: Apache-2.0
#pragma once
// A bank of good images with its model, as `vitrail anomaly fit` writes it.
#include "vitrail/anomaly/detector.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

struct AnomalyEncoding : ImageEncoding {
  size_t bytes() const override { return patches.distances.size() * sizeof(float); }
  anomaly::PatchDistances patches;
};

class AnomalyModel : public LoadedModel {
 public:
  // Throws Error for options other than threads and precision.
  AnomalyModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "a bank of anomaly detection"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return detector_.model().session().precision(); }
  image::ColorMode color_mode() const override { return detector_.model().color_mode(); }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  const anomaly::Detector& detector() const { return detector_; }

 private:
  anomaly::Detector detector_;
};

Family anomaly_family();

}  // namespace vitrail::tasks
