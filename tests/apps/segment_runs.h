// SPDX-License-Identifier: Apache-2.0
#pragma once
// For the tests of `vitrail segment`: models of Segment Anything, a photograph, and what the program prints of them.
#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {

inline const SamFixture& padded_windows() {
  static const SamFixture fixture = sam_fixture("padded_windows");
  return fixture;
}

inline const SamFixture& exact_windows() {
  static const SamFixture fixture = sam_fixture("exact_windows");
  return fixture;
}

// The photograph of exact_windows(), of 61×90 pixels.
inline const std::filesystem::path& photo_file() {
  static const std::filesystem::path file = [] {
    const std::filesystem::path made = scratch_folder() / "photo.png";
    image::write_png(made, exact_windows().image);
    return made;
  }();
  return file;
}

// What segment prints with exact_windows(); it must succeed.
inline std::string segment_text(const Arguments& more) {
  return run(Arguments{"segment", "-m", exact_windows().model} + more).out;
}

}  // namespace vitrail::testing
