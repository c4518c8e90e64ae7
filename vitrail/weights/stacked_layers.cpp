// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/stacked_layers_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

constexpr std::string_view kStacked = "encoderblock/";
constexpr int64_t kMaxLayers = 4096;
// A tensor without elements has layers that need no bytes of the file.  The largest models have some 1,000 tensors.
constexpr size_t kMaxTensors = 100'000;

bool is_stacked(const TensorInfo& info) { return info.name.find(kStacked) != std::string::npos; }

class Unstacked : public TensorFile {
 public:
  Unstacked(std::unique_ptr<TensorFile> file, const std::string& where) : file_(std::move(file)) {
    format_ = file_->format();
    metadata_ = file_->metadata();
    objects_ = file_->objects();
    state_dicts_ = file_->state_dicts();
    for (size_t i = 0; i < file_->tensors().size(); ++i) {
      const TensorInfo& info = file_->tensors()[i];
      if (is_stacked(info)) {
        add_layers(i, info, where);
      } else {
        tensors_.push_back(info);
        sources_.push_back({i, -1});
      }
    }
  }

  Tensor tensor(size_t index) const override {
    const auto [source, layer] = sources_[index];
    const Tensor tensor = file_->tensor(source);
    return layer < 0 ? tensor : tensor.select(0, layer);
  }

 private:
  void add_layers(size_t source, const TensorInfo& info, const std::string& where) {
    const int64_t layers = info.shape.rank() == 0 ? 0 : info.shape[0];
    if (layers < 1 || layers > kMaxLayers)
      throw Error(str(where, ": ", info.name), str("1 to ", kMaxLayers, " layers along the first axis"),
                  info.shape.to_string());
    if (tensors_.size() + static_cast<size_t>(layers) > kMaxTensors)
      throw Error(where, str("at most ", kMaxTensors, " tensors of layers and others"), "more");
    const size_t at = info.name.find(kStacked) + kStacked.size() - 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      TensorInfo row = info;
      row.name = str(info.name.substr(0, at), "_", layer, info.name.substr(at));
      row.shape = Shape(std::span<const int64_t>(info.shape.begin() + 1, info.shape.end()));
      tensors_.push_back(std::move(row));
      sources_.push_back({source, layer});
    }
  }

  struct Source {
    size_t index;
    int64_t layer;  // −1: the complete tensor
  };
  std::unique_ptr<TensorFile> file_;
  std::vector<Source> sources_;
};

}  // namespace

std::unique_ptr<TensorFile> unstack_layers(std::unique_ptr<TensorFile> file, const std::string& where) {
  if (std::ranges::none_of(file->tensors(), is_stacked)) return file;
  return std::make_unique<Unstacked>(std::move(file), where);
}

}  // namespace vitrail::weights
