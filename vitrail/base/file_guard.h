// SPDX-License-Identifier: Apache-2.0
#pragma once
// Protection against files that change while they are memory-mapped.

namespace vitrail {

// Installs a SIGBUS handler for the mapped files of the library (weights, archives, datasets).  Without it, a file that
// is cut short or cannot be read any more ends the process.  With it, the lost pages read as zeros, and
// check_mapped_files() reports the file.  At most 256 mapped files are guarded at a time.  Faults elsewhere keep their
// default action.  For programs: a library that is part of a larger program should leave signals to it.
void guard_mapped_files();

// Throws Error naming a mapped file that has changed since it was opened: its size, its modification time, or a part
// that could not be read.  Results that were computed since then may be wrong.  A file that is replaced by another one
// (by renaming) does not count: the mapping keeps the old one.
void check_mapped_files();

}  // namespace vitrail
