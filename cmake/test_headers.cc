// What the precompiled headers of the tests belong to (Longwire.cmake).
