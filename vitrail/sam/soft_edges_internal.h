// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks that were resized, rotated or compressed with loss have grey levels at their edges, which number no objects.
#include <string>

#include "vitrail/image/image.h"

namespace vitrail::sam {

// Throws Error naming `where` if most colours of an RGB mask are those of soft edges: they have hardly a pixel within
// pixels of their own, and are in pieces or beside larger objects.  A few such colours are taken for small objects,
// unless they are three or more levels of grey from black to one lighter object.
void require_hard_edges(const image::Image& mask, const std::string& where);

}  // namespace vitrail::sam
