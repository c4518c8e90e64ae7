// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pillow's resampling filters.
#include <cstdint>
#include <string>

namespace vitrail::image {

// The values are those of Pillow's Image.Resampling, which Hugging Face's configurations store as "resample".
enum class Filter { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// Names as in timm's config.json ("bicubic"), in any case, and "linear" and "cubic".  Throws Error for others.
Filter filter_from_name(const std::string& name);
const char* name_of(Filter filter);

}  // namespace vitrail::image
