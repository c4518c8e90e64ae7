// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/input/image_inputs.h"

#include <algorithm>
#include <sstream>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"

namespace vitrail::app {
namespace {

constexpr const char* kStandardInput = "-";

}  // namespace

ImageInputs::ImageInputs(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)),
      reads_standard_input_(std::find(arguments_.begin(), arguments_.end(), kStandardInput) != arguments_.end()) {
  // Errors of folders show at once, and the number of images is known.
  if (reads_standard_input_) return;
  add(data::expand_input_paths(arguments_));
  next_argument_ = arguments_.size();
}

std::optional<size_t> ImageInputs::count() const {
  return reads_standard_input_ ? std::nullopt : std::optional(inputs_.size());
}

std::optional<data::InputPath> ImageInputs::at(size_t i) {
  while (begin_expanding(i)) {
    try {
      expand_next_argument();
    } catch (...) {
      end_expanding();
      throw;
    }
    end_expanding();
  }
  return known(i);
}

// Whether this thread is to expand the next argument: the i-th image is not known, and there are further arguments.
// Waits while another thread expands, but no longer than until the i-th image is known.
bool ImageInputs::begin_expanding(size_t i) {
  std::unique_lock lock(mutex_);
  expanded_.wait(lock, [&] { return i < inputs_.size() || !expanding_; });
  if (i < inputs_.size() || next_argument_ == arguments_.size()) return false;
  expanding_ = true;
  return true;
}

void ImageInputs::end_expanding() {
  {
    const std::lock_guard lock(mutex_);
    expanding_ = false;
  }
  expanded_.notify_all();
}

std::optional<data::InputPath> ImageInputs::known(size_t i) const {
  const std::lock_guard lock(mutex_);
  return i < inputs_.size() ? std::optional(inputs_[i]) : std::nullopt;
}

void ImageInputs::add(std::vector<data::InputPath> inputs) {
  const std::lock_guard lock(mutex_);
  for (data::InputPath& input : inputs) inputs_.push_back(std::move(input));
}

void ImageInputs::expand_next_argument() {
  const std::string& argument = arguments_[next_argument_];
  if (argument == kStandardInput) return expand_standard_input();
  ++next_argument_;
  add(data::expand_input_paths({argument}));
}

// Takes one path, or the image.  At the end of standard input, continues with the next argument.
void ImageInputs::expand_standard_input() {
  try {
    if (standard_input_.is_image()) {
      image_ = standard_input_.image();
      add({{kStandardInput, ""}});
      ++next_argument_;
      return;
    }
    if (const auto path = standard_input_.next_path()) {
      return add(data::expand_input_paths({*path}));
    }
  } catch (const Error& error) {
    add({{kStandardInput, error.what()}});
  }
  ++next_argument_;
}

std::vector<std::byte> ImageInputs::bytes(size_t i) {
  const data::InputPath input = known(i).value();
  if (!input.error.empty()) throw Error(with_path(input.path, input.error));
  return input.path == kStandardInput ? image_ : read_file(input.path, image::kMaxFileBytes);
}

image::Image ImageInputs::read(size_t i, const image::DecodeOptions& decode, const OnBytes& on_bytes) {
  const std::string path = known(i).value().path;
  const std::vector<std::byte> encoded = bytes(i);
  if (on_bytes) on_bytes(i, encoded);
  return image::decode(encoded, decode, path == kStandardInput ? "standard input" : path);
}

}  // namespace vitrail::app
