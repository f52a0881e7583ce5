const VERSIONS = [];
