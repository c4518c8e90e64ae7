// SPDX-License-Identifier: Apache-2.0
#pragma once
// The beginning of an .npy array: what comes before its elements.
#include <cstdint>
#include <span>
#include <string>

#include "vitrail/base/dtype.h"

namespace vitrail {

const char* npy_descr(DType dtype);  // "<f4", "<f2" or "<i8"

// The preamble and header, byte for byte as numpy.save writes them.  Their length does not depend on the first axis.
// Throws Error naming `where` for too many axes.
std::string npy_header(const std::string& where, const std::string& descr, std::span<const int64_t> shape);

}  // namespace vitrail
