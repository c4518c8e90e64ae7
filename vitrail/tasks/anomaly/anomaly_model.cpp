// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/anomaly/anomaly_model.h"

#include "vitrail/base/fields_json_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::tasks {
namespace {

// The distances of the patches alone.
class DistanceTensor : public Request {
 public:
  explicit DistanceTensor(const AnomalyModel& model) : grid_(model.detector().grid()) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto& patches = static_cast<const AnomalyEncoding*>(encoding)->patches;
    item.results = {{Tensor::from<float>({grid_[0], grid_[1]}, patches.distances)}};
  }
  std::vector<Output> outputs() const override { return {{"distances", {grid_[0], grid_[1]}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "the distances are an array"); }

 private:
  std::array<int64_t, 2> grid_;
};

}  // namespace

AnomalyModel::AnomalyModel(const models::ModelFiles& files, const OpenOptions& options)
    : detector_(files, require_no_others(options, "a bank of anomaly detection").model) {}

std::string AnomalyModel::config() const {
  return pipeline::json_line(json_of_fields(anomaly::describe_bank, detector_.bank()));
}

std::string AnomalyModel::facts() const {
  const anomaly::Bank& bank = detector_.bank();
  return pipeline::json_line({{"architecture", detector_.model().config().architecture},
                              {"image_size", bank.image_size},
                              {"patches", bank.patches.size(0)},
                              {"images", bank.images},
                              {"precision", kernels::name_of(precision())}});
}

std::unique_ptr<Request> AnomalyModel::tensors() const { return std::make_unique<DistanceTensor>(*this); }

void AnomalyModel::warm_up() const {
  const auto& size = detector_.bank().image_size;
  static_cast<void>(detector_.run(image::make_image(size[1], size[0], 3)));
}

std::shared_ptr<const ImageEncoding> AnomalyModel::encode(const image::ImageView& photo) const {
  const auto encoding = std::make_shared<AnomalyEncoding>();
  encoding->width = photo.width();
  encoding->height = photo.height();
  encoding->patches = detector_.run(photo);
  return encoding;
}

Family anomaly_family() {
  return {.name = "anomaly",
          .recognises = [](const models::ModelFiles& files) { return anomaly::is_bank(files.first); },
          .load = load_as<AnomalyModel>};
}

}  // namespace vitrail::tasks
