// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of the learning page: docs/design/explain.md, "Arrays".
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

// i8: with a scale for each row of the last axis, absolute maximum / 127.
enum class Encoding : uint8_t { f32, f16, i8 };

// u8 values of each channel c are byte · scale + offset.
struct ChannelScale {
  double scale = 0, offset = 0;
};

// Encodes arrays into blobs, in the order of the calls.
class Arrays {
 public:
  void begin_blob() { blobs_.emplace_back(); }  // the following arrays; the page decompresses a blob at once

  // Returns the values as the page reads them, in f32.  rows: indices along the last axis but one; empty: all.  Of
  // chosen rows the others are 0 in the result.
  Tensor add(const std::string& name, const Tensor& values, Encoding encoding, const std::vector<int64_t>& rows = {});
  // values [B, C, H, W] as bytes.  Returns false, and adds nothing, if they are no bytes to 1e-5.
  bool add_bytes(const std::string& name, const Tensor& values, const std::vector<ChannelScale>& channels);

  size_t raw_bytes() const;
  const nlohmann::ordered_json& tensors() const { return tensors_; }
  // One element <script type="application/octet-stream;base64" id="blob-K"> for each blob.
  std::string elements() const;
  size_t blobs() const { return blobs_.size(); }

 private:
  size_t place(size_t alignment);  // the offset of the next array

  std::vector<std::string> blobs_{std::string()};
  nlohmann::ordered_json tensors_ = nlohmann::ordered_json::object();
};

// The values in f32 at these indices along the last axis but one, without rows all of them.
Tensor chosen_rows(const Tensor& values, const std::vector<int64_t>& rows);

// The largest absolute difference; infinite if one of them has a value that is not finite.  Both f32, of one shape.
double max_difference(const Tensor& a, const Tensor& b);

// A number for JSON, which has no infinities and NaN: these become the text "inf", "-inf" or "nan".
nlohmann::ordered_json finite_or_text(double value);

}  // namespace vitrail::explain
