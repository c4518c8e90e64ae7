// SPDX-License-Identifier: Apache-2.0
#include "tests/support/torch_save.h"

namespace vitrail::testing {
namespace {

std::string integer(int64_t value) { return "I" + std::to_string(value) + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }

}  // namespace

std::string pickled_text(const std::string& text) {
  return std::string("\x8c") + static_cast<char>(text.size()) + text;
}

std::string pickled_global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string items;
  for (const auto& [name, value] : entries) items += pickled_text(name) + value;
  return "}(" + items + "u";
}

std::string pickled_call(const std::string& module, const std::string& name, const std::string& arguments) {
  return pickled_global(module, name) + tuple(arguments) + "R";
}

std::string TorchSave::tensor(const Tensor& f32) {
  const Tensor kept = f32.contiguous();
  const std::string key = std::to_string(tensors_.size());
  tensors_.push_back(kept);
  std::string shape, strides;
  for (const int64_t extent : kept.shape()) shape += integer(extent);
  for (const int64_t stride : kept.strides()) strides += integer(stride);
  const std::string storage = tuple(pickled_text("storage") + pickled_global("torch", "FloatStorage") +
                                    pickled_text(key) + pickled_text("cpu") + integer(kept.numel())) +
                              "Q";
  return pickled_call(
      "torch._utils", "_rebuild_tensor_v2",
      storage + integer(0) + tuple(shape) + tuple(strides) + "\x89" + pickled_call("collections", "OrderedDict"));
}

std::string TorchSave::state_dict(const std::vector<std::pair<std::string, Tensor>>& tensors,
                                  const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [name, value] : tensors) entries.emplace_back(prefix + name, tensor(value));
  return pickled_dict(entries);
}

std::string TorchSave::file(const std::string& pickled_root) const {
  std::string bytes("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  bytes += "\x80\x02" + pickled_dict({{"little_endian", "\x88"}}) + ".\x80\x02" + pickled_root + ".\x80\x02](";
  for (size_t key = 0; key < tensors_.size(); ++key) bytes += pickled_text(std::to_string(key));
  bytes += "e.";
  for (const Tensor& tensor : tensors_) {
    const int64_t count = tensor.numel();
    bytes.append(reinterpret_cast<const char*>(&count), 8);
    bytes.append(reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(count) * sizeof(float));
  }
  return bytes;
}

}  // namespace vitrail::testing
