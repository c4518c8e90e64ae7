// SPDX-License-Identifier: Apache-2.0
#pragma once
// The resampling filters that Pillow knows.
#include <cstdint>
#include <string>

namespace vitrail::image {

// The numbers are Pillow's (Image.Resampling), which Hugging Face's files store as "resample".
enum class Filter { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// "bicubic" and so on, as timm's config.json names them, in any case; "linear" and "cubic" are taken too.
Filter filter_from_name(const std::string& name);
Filter filter_from_number(int64_t number);  // Pillow's
const char* name_of(Filter filter);

}  // namespace vitrail::image
