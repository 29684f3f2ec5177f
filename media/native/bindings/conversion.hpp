#pragma once

#include <memory>

#include "trunkline/graph/audio_converter.hpp"

namespace trunkline::bindings {

/// A converter of audio, which an engine's thread may share. It is held apart from the object of Python,
/// which only a thread with the interpreter's lock may let go.
struct ConverterHolder {
    std::shared_ptr<graph::AudioConverter> converter;
};

}  // namespace trunkline::bindings
