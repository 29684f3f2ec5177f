#pragma once

#include <string_view>

namespace trunkline::signalling {

/// True for a message whose first User-Agent or Server names a scanner. At most the first 2,048 bytes of the
/// message are searched, and 200 of the value.
bool names_scanner(std::string_view message);

}  // namespace trunkline::signalling
