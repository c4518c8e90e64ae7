// SPDX-License-Identifier: Apache-2.0
#pragma once
// What CMake knows of the build; the values are in generated sources.

namespace vitrail::app {

extern const char* const
    kCommit;  // the commit of the sources, with "-dirty" if they differ from it; "unknown" without git
extern const char* const kNotice;  // the text of the file NOTICE

}  // namespace vitrail::app
