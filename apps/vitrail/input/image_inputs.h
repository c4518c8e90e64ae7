// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images that the arguments of a command name, in order: files, folders, pipes and standard input.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vitrail/input/standard_input.h"
#include "vitrail/data/datasets/input_paths.h"
#include "vitrail/image/decode.h"

namespace vitrail::app {

// Gets the bytes of the i-th image.
using OnBytes = std::function<void(size_t i, std::span<const std::byte> bytes)>;

// "-" stands for standard input: paths, one per line or ending in NUL, or the bytes of one image.  Paths are used as
// they arrive.  Thread-safe.
class ImageInputs {
 public:
  explicit ImageInputs(std::vector<std::string> arguments);

  // The number of images; none if standard input is among the arguments, because it may not have ended.
  std::optional<size_t> count() const;

  // The i-th image.  Waits until it is known; none after the last.  A failed read of standard input is an entry with an
  // error, the last one.
  std::optional<data::InputPath> at(size_t i);

  // The bytes of the i-th image, which at(i) returned, and the image, whose bytes on_bytes gets before they are
  // decoded. Throw Error.
  std::vector<std::byte> bytes(size_t i);
  image::Image read(size_t i, const image::DecodeOptions& decode, const OnBytes& on_bytes = {});

  // Whether at() waits for standard input.
  bool waiting() const { return standard_input_.waiting(); }

 private:
  std::optional<data::InputPath> known(size_t i) const;
  bool begin_expanding(size_t i);
  void end_expanding();
  void expand_next_argument();
  void expand_standard_input();
  void add(std::vector<data::InputPath> inputs);

  std::vector<std::string> arguments_;
  bool reads_standard_input_;
  mutable std::mutex mutex_;  // protects inputs_ and expanding_
  std::condition_variable expanded_;
  std::deque<data::InputPath> inputs_;
  bool expanding_ = false;  // one thread, without the mutex, uses the members below and may await standard input
  size_t next_argument_ = 0;
  StandardInput standard_input_;
  std::vector<std::byte> image_;  // on standard input; written before its entry is in the list
};

}  // namespace vitrail::app
