// SPDX-License-Identifier: Apache-2.0
#pragma once
// What CMake knows of the build; the values are in generated sources.

namespace vitrail::app {

// The commit of the sources, with "-dirty" if they differ from it; "unknown" without git.
extern const char* const kCommit;
// The text of the file NOTICE.
extern const char* const kNotice;

}  // namespace vitrail::app
