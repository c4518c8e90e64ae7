// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace vitrail {

constexpr size_t kLinePair = 128;  // two cache lines, which processors fetch together
constexpr size_t kHugePage = size_t{2} << 20;

// bytes at a multiple of kLinePair, not cleared; std::free() gives them back.  From kHugePage up they begin at a
// multiple of it and come in such pages where the system allows it: the first touch of memory then stops the program
// once in 2 MB and not every 4 kB.  Throws std::bad_alloc.
void* allocate_aligned(size_t bytes);

}  // namespace vitrail
