// Package stranger lies in a folder without a row.
package stranger
