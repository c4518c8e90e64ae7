// SPDX-License-Identifier: Apache-2.0
#pragma once
// EoMT: semantic, instance and panoptic segmentation by queries.
#include "vitrail/analysis/query_segments.h"
#include "vitrail/models/eomt/eomt.h"
#include "vitrail/tasks/label_map/label_map_model.h"
#include "vitrail/tasks/network_model.h"

namespace vitrail::tasks {

struct EomtEncoding : ImageEncoding {
  size_t bytes() const override;
  models::EomtPlacement placement;
  std::vector<analysis::QueryMasks> crops;  // the outputs; of a padded image, one
};

class EomtModel : public NetworkModel<LabelMapModel, models::Eomt, models::EomtConfig> {
 public:
  // Throws Error for options other than threads and precision.
  EomtModel(const models::ModelFiles& files, const OpenOptions& options);

  std::string family() const override { return "EoMT"; }
  std::string config() const override;
  std::string facts() const override;
  std::vector<std::string> class_names() const override { return net().config().labels; }
  Tensor input_of(const image::Image& photo) const override;
  std::vector<Tensor> run(const Tensor& inputs, const infer::Request& pass) const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;
  // A model for crops gives semantic maps alone, because an object may be in several.
  std::vector<LabelMapTask> label_map_tasks() const override;
  std::array<int64_t, 2> nominal_size() const override;
  std::optional<Network> network() const override;
  LabelMap label_map(const ImageEncoding& encoding, LabelMapTask task, int64_t height, int64_t width,
                     const LabelMapThresholds& thresholds) const override;

  const models::EomtConfig& eomt_config() const { return net().config(); }

 protected:
  infer::NamedTensors forward(const infer::NamedTensors& inputs) const override;
  Shape nominal_input() const override;
  Tensor prepared(const image::ImageView& photo) const override;  // the first crop

 private:
  // The resized image without its padding, and the input of a crop [1, C, S, S].
  image::Image resized(const image::ImageView& photo, const models::EomtPlacement& placement) const;
  Tensor crop_of(const image::Image& whole, const models::EomtPlacement& placement, int64_t start) const;
};

Family eomt_family();

}  // namespace vitrail::tasks
