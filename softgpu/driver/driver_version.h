// Which driver this library is, or poses as.
#pragma once

namespace softgpu {

// As cuDriverGetVersion: 13000 is CUDA 13.0, older ones are of the libraries for tests.
int DriverVersion();

// The last attribute of a device that a driver of that version knows.
int LastDeviceAttribute();

}  // namespace softgpu
