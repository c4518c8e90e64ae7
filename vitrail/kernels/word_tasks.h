#pragma once
// A task (tile_tasks.h) of the products whose numbers lie in words (word_panel.h).
#include <algorithm>
#include <cstdint>

#include "vitrail/kernels/tile_tasks.h"
#include "vitrail/kernels/word_panel.h"

namespace vitrail::kernels {

struct WordTask {
  const int32_t* x;       // [rows][words]
  const int32_t* panels;  // each [words][width]
  int64_t words, width;
  WordSums add_panel;
};

// sums [rows][kMostColumns] of x · panels: a block of depth after the other.
inline void sum_words(const WordTask& task, int64_t rows, int64_t columns, void* sums) {
  const int64_t blocks = std::max<int64_t>(1, (task.words + kMostDepth - 1) / kMostDepth);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = task.words * block / blocks, last = task.words * (block + 1) / blocks;
    for (int64_t column = 0; column < columns; column += task.width) {
      task.add_panel({.x = task.x + first,
                      .ldx = task.words,
                      .panel = task.panels + column * task.words + first * task.width,
                      .words = last - first,
                      .rows = rows,
                      .sums = static_cast<int32_t*>(sums) + column,  // either type has 4 bytes
                      .ld_sums = kMostColumns,
                      .accumulate = block > 0});
    }
  }
}

}  // namespace vitrail::kernels
